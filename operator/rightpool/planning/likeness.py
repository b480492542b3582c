"""Likeness: what has changed about a job, for whoever keeps something that was made from it.

The user's spec, the persisted state and what the cluster shows count as they are; measurements are made anew in every
cycle and count by what they say.
"""

from dataclasses import fields
from operator import attrgetter
from typing import Final

from rightpool.planning.job import Job, Observed
from rightpool.profiles.likeness import alike

# Compared by likeness, follow from it, or concern only what is under way.
_ASIDE: Final = frozenset(
    {"profile", "diagnosis", "checkpoint_at", "checkpoint_error", "template_checked", "variants_checked"}
)
_LASTING: Final = attrgetter(*(field.name for field in fields(Job) if field.name != "observed"))
_SEEN: Final = attrgetter(*(name for name in Observed._fields if name not in _ASIDE))


def unchanged(before: Job, now: Job) -> bool:
    """Whether a job would be evaluated as it was. Identity is asked first by the comparison of tuples."""
    return before is now or (
        _LASTING(before) == _LASTING(now)
        and _SEEN(before.observed) == _SEEN(now.observed)
        and (before.observed.profile is now.observed.profile or alike(before.observed.profile, now.observed.profile))
    )
