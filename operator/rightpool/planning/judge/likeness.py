"""Likeness: what has changed about a job, for code that keeps something that was made from it.

The user's spec, the persisted state and what the cluster shows count as they are; measurements are made anew in every
cycle and count by what they say.
"""

from dataclasses import fields
from operator import attrgetter
from typing import Final

from rightpool.planning.jobs.job import Job, Observed
from rightpool.planning.judge.outlook import pace_of
from rightpool.profiles.likeness import SAME_READING, alike

# Compared by likeness, follow from it, or concern only what is under way.
_ASIDE: Final = frozenset(
    {
        "profile",
        "diagnosis",
        "variation",
        "checkpoint_at",
        "checkpoint_error",
        "template_checked",
        "variants_checked",
    }
)
# Of the doubt of the throughput in the long run, relative.
_SAME_DOUBT: Final = 0.05
_LASTING: Final = attrgetter(*(field.name for field in fields(Job) if field.name != "observed"))
_SEEN: Final = attrgetter(*(name for name in Observed._fields if name not in _ASIDE))


def unchanged(before: Job, now: Job) -> bool:
    """Whether a job would be evaluated as it was. Identity is asked first by the comparison of tuples."""
    return before is now or (
        _LASTING(before) == _LASTING(now)
        and _SEEN(before.observed) == _SEEN(now.observed)
        and (before.observed.profile is now.observed.profile or alike(before.observed.profile, now.observed.profile))
        and (before.observed.variation is now.observed.variation or _same_pace(before, now))
    )


def _same_pace(before: Job, now: Job) -> bool:
    """Whether the windows so far say the same of the throughput in the long run; one more window rarely changes it."""
    rate, doubt = pace_of(before)
    new_rate, new_doubt = pace_of(now)
    if rate != rate or new_rate != new_rate:
        return rate != rate and new_rate != new_rate
    return abs(rate - new_rate) <= SAME_READING * abs(new_rate) and abs(doubt - new_doubt) <= _SAME_DOUBT * new_doubt
