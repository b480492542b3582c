"""News: whether anything new is seen of a job. It is asked once a cycle, where the job is looked at.

A job of which nothing new is seen stays the very object of the cycle before, and whoever keeps what was made from it
compares objects: its evaluation, its assessment, and that its status says all. Measured values always vary a little,
and one window more hardly ever tells anything. From time to time a job is a new object in any case: how sure its pace
is, and what a status counts by the clock, do not get old.
"""

from dataclasses import fields
from operator import attrgetter
from typing import Final

from rightpool.api.state import JobState
from rightpool.planning.jobs.job import Job, Observed
from rightpool.planning.moves.arrival import size_to_measure
from rightpool.planning.work.outlook import pace_of
from rightpool.planning.work.registry import work_of
from rightpool.profiles.likeness import SAME_READING
from rightpool.profiles.steadiness import worth_keeping

LOOK_SECONDS: Final = 1800.0
"""A job is a new object again after this time at most, whatever is seen."""
PROGRESS_SECONDS: Final = 400.0
"""The same of a job whose status shows how much of it is done."""

# Of the doubt of the throughput in the long run, relative.
_SAME_DOUBT: Final = 0.05
# What time alone does not take a step further, and an account without a counterfactual.
_STANDING: Final = frozenset(
    {
        "account",
        "adopted",
        "avoid",
        "decisions",
        "disruptions",
        "edit",
        "finished",
        "history",
        "image",
        "last_move_at",
        "moves",
        "progress",
        "recovery",
        "revision",
        "trial_answer",
        "trials",
        "trials_cost",
        "trials_day",
        "tried",
        "variation",
    }
)
_UNDER_WAY: Final = attrgetter(*(field.name for field in fields(JobState) if field.name not in _STANDING))
_STORED: Final = attrgetter(*(field.name for field in fields(Job) if field.name != "observed"))
# The newest save concerns only what is under way, and what windows add is compared by what it says.
_WINDOWS: Final = ("checkpoint_at", "service", "variation")
_SEEN: Final = attrgetter(*(name for name in Observed._fields if name not in _WINDOWS))

_COUNTED: Final = attrgetter(*_WINDOWS)


def taken_over(before: Job, now: Job) -> Job:
    """The job as it was where nothing new is seen of it, else as it is now. A profile that says the same is the same
    object already (`RevisionWindow`)."""
    one, two = before.observed, now.observed
    if _STORED(before) != _STORED(now) or _SEEN(one) != _SEEN(two):
        return now
    if _COUNTED(one) == _COUNTED(two):
        return before
    same = at_rest(before) and _same_pace(before, now) and not worth_keeping(now.state.variation, two.variation)
    return before if same else now


def look_until(job: Job, now: float) -> float:
    """Unix seconds up to which a job that is a new object now may stay it. Not all in the same cycle."""
    longest = LOOK_SECONDS if work_of(job.spec).extent(job, now) is None else PROGRESS_SECONDS
    return now + longest * (0.5 + 0.5 * job.phase)


def at_rest(job: Job) -> bool:
    """Whether neither time nor one more window takes the job a step further: `advance` gives the same for the same job,
    assessment and policy, whenever it is asked, however its windows differ by then, until that is worth keeping."""
    return (
        not any(_UNDER_WAY(job.state))
        and job.state.account.counterfactual is None
        and size_to_measure(job) is None
        and job.state.edit_to_judge is None
        and job.trace_request is None
        and job.trial_asked is None
        and job.observed.threat is None
        and job.observed.trial is None
        and job.spec.targets.budget is None
        and not job.spec.suspend
    )


def _same_pace(before: Job, now: Job) -> bool:
    """Whether the windows so far say the same of the throughput in the long run; one more window rarely changes it."""
    rate, doubt = pace_of(before)
    new_rate, new_doubt = pace_of(now)
    if rate != rate or new_rate != new_rate:
        return rate != rate and new_rate != new_rate
    return abs(rate - new_rate) <= SAME_READING * abs(new_rate) and abs(doubt - new_doubt) <= _SAME_DOUBT * new_doubt
