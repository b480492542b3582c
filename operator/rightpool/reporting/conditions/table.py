"""The conditions of a ProfiledJob, in the order in which they are shown: each says one thing, why it is so in one word,
and the evidence with a remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from rightpool.api.conditions import Condition, ConditionType
from rightpool.planning.jobs.job import Job
from rightpool.reporting.conditions.context import Context, Statement
from rightpool.reporting.conditions.health import completed, degraded, failed
from rightpool.reporting.conditions.measured import efficient, profiled
from rightpool.reporting.conditions.migrating import migrating, verified
from rightpool.reporting.conditions.placed import placed
from rightpool.reporting.conditions.targets import cost_efficient, targets_met

_CONDITIONS: Final[Mapping[ConditionType, Callable[[Job, Context], Statement | None]]] = {
    ConditionType.PLACED: placed,
    ConditionType.PROFILED: profiled,
    ConditionType.EFFICIENT: efficient,
    ConditionType.COST_EFFICIENT: cost_efficient,
    ConditionType.TARGETS_MET: targets_met,
    ConditionType.MIGRATING: migrating,
    ConditionType.VERIFIED: verified,
    ConditionType.DEGRADED: degraded,
    ConditionType.COMPLETED: completed,
    ConditionType.FAILED: failed,
}
_NAMED: Final = tuple((kind.value, function) for kind, function in _CONDITIONS.items())


def statements_of(job: Job, context: Context) -> Iterator[tuple[str, Statement]]:
    """What is said of the job, by the type of the condition."""
    for kind, function in _NAMED:
        statement = function(job, context)
        if statement is not None:
            yield kind, statement


def conditions_of(job: Job, context: Context) -> Iterator[Condition]:
    """Those that apply; without lastTransitionTime, which depends on what was said before. All are of the generation
    that the status has looked at."""
    for kind, statement in statements_of(job, context):
        yield Condition(kind, statement.status, str(statement.reason), statement.text())
