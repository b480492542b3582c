"""The status as memory: what of a JobState is written into a ProfiledJob's status, and how it is read back.

The operator keeps no state of its own. What the state machine needs to go on after a crash is in the status, in a form
that a person can read; reading it back gives the same state, and writing that gives the same status. Numbers lose
digits on the way out once, and never drift after that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, TypeVar

from rightpool.api import status as wire
from rightpool.api.conditions import ConditionType, Reason, find_condition
from rightpool.api.profiledjob import MAX_REPLICAS
from rightpool.api.quantities import format_money, format_quantity
from rightpool.api.resources import MAX_REVISION
from rightpool.hardware.placement import CapacityType, Placement
from rightpool.planning.account import Account
from rightpool.planning.decision import Action
from rightpool.planning.ledger import AvoidedPlacement, LedgerEntry, Outcome
from rightpool.planning.migration import Migration, Phase
from rightpool.planning.revision import RevisionRef
from rightpool.planning.snapshot import JobState
from rightpool.planning.transitions import COMPLETED, FAILED
from rightpool.prediction.estimate import Z80, Estimate

DIGITS: Final = 6  # of throughputs and costs: half a millionth is far below what a window can tell
MONEY_PLACES: Final = 8  # a status that is written often must not round away what was spent since the last time
MAX_AVOID: Final = 64

Word = TypeVar("Word", bound=StrEnum)

_TERMINAL: Final = {COMPLETED: ConditionType.COMPLETED, FAILED: ConditionType.FAILED}


# --- times and numbers -----------------------------------------------------------------------------------------------


def to_time(seconds: float) -> datetime:
    """Unix seconds as an instant, to the millisecond."""
    return datetime.fromtimestamp(round(seconds, 3), UTC)


def to_time_not_before(seconds: float) -> datetime:
    """The same, never earlier: a save must not look newer than itself."""
    return datetime.fromtimestamp(math.ceil(seconds * 1000) / 1000, UTC)


def from_time(moment: datetime) -> float:
    """An instant as Unix seconds."""
    return moment.timestamp()


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else to_time(seconds)


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else from_time(moment)


def _number(value: float | None) -> str | None:
    return None if value is None else format_quantity(value, DIGITS)


def _money(value: float | None) -> str | None:
    if value is None:
        return None
    whole, fraction = f"{value:.{MONEY_PLACES}f}".split(".")
    fraction = fraction.rstrip("0").ljust(2, "0")
    return f"{whole}.{fraction}" if int(whole) or int(fraction) else "0.00"


def _float(text: str | None) -> float | None:
    return None if text is None else float(text)


def _known(words: type[Word], text: str, field: str) -> Word:
    try:
        return words(text)
    except ValueError:
        raise ValueError(f"{field}: {text[:40]!r} is not known") from None


def estimate_to_wire(estimate: Estimate | None) -> wire.EstimateStatus | None:
    """Median and 80% interval. The lower end follows from the other two, as it does on reading back."""
    if estimate is None:
        return None
    median = format_quantity(estimate.median, DIGITS)
    high = format_quantity(max(estimate.high, estimate.median), DIGITS)
    low = float(median) ** 2 / float(high) if float(high) else 0.0  # on chips that cost nothing
    return wire.EstimateStatus(median=median, low=format_quantity(low, DIGITS), high=high)


def estimate_from_wire(status: wire.EstimateStatus | None) -> Estimate | None:
    """What it was derived from is not kept."""
    if status is None:
        return None
    median, high = float(status.median), float(status.high)
    if median == high == 0.0:
        return Estimate(0.0, 0.0)
    if not 0.0 < median <= high:
        raise ValueError(f"an estimate's median is {status.median} and its high {status.high}: 0 < median ≤ high")
    return Estimate(median, max(0.0, math.log(high / median) / Z80))


# --- revisions and placements ----------------------------------------------------------------------------------------


def revision_to_wire(ref: RevisionRef) -> wire.PlacementStatus:
    """A Revision, as status.placement and in a migration."""
    placement = ref.placement
    return wire.PlacementStatus(
        revision=ref.revision,
        pool=placement.pool,
        chips=placement.chips,
        replicas=placement.replicas,
        capacity=placement.capacity.value,
        cost_per_hour=_number(ref.cost_per_hour),
        since=_time(ref.since),
        created_at=to_time(ref.created_at),
        workload_hash=ref.workload_hash,
        requested_chips=ref.requested[0],
        requested_replicas=ref.requested[1],
        generation=ref.generation,
    )


def revision_from_wire(status: wire.PlacementStatus) -> RevisionRef:
    """The Revision that a status names."""
    if status.revision > MAX_REVISION:
        raise ValueError(f"placement.revision: {status.revision} is no number that a Revision can have")
    if status.revision < 1 or status.chips < 1 or not 1 <= status.replicas <= MAX_REPLICAS:
        raise ValueError(
            f"a placement is r{status.revision} of {status.chips} chips in {status.replicas} pods: 1 or more of each, "
            f"and at most {MAX_REPLICAS} pods"
        )
    if status.chips % status.replicas:
        raise ValueError(f"a placement is {status.chips} chips in {status.replicas} pods, which is not as many in each")
    return RevisionRef(
        revision=status.revision,
        placement=_placement(status),
        workload_hash=status.workload_hash or "",
        requested=(status.requested_chips or status.chips, status.requested_replicas or status.replicas),
        created_at=_seconds(status.created_at) or 0.0,
        cost_per_hour=_float(status.cost_per_hour),
        since=_seconds(status.since),
        generation=status.generation,
    )


def placement_to_wire(placement: Placement, cost_per_hour: float | None = None) -> wire.TargetPlacement:
    """A placement without a Revision."""
    return wire.TargetPlacement(
        pool=placement.pool,
        chips=placement.chips,
        replicas=placement.replicas,
        capacity=placement.capacity.value,
        cost_per_hour=_number(cost_per_hour),
    )


def _placement(status: wire.PlacementStatus | wire.TargetPlacement) -> Placement:
    capacity = CapacityType(status.capacity) if status.capacity else CapacityType.ON_DEMAND
    return Placement(status.pool, status.chips, status.replicas, capacity)


# --- migration, ledger, account --------------------------------------------------------------------------------------


def migration_to_wire(migration: Migration) -> wire.MigrationStatus:
    """A migration that is under way."""
    saved_before = migration.saved_before
    return wire.MigrationStatus(
        id=migration.id,
        action=migration.action.value,
        phase=migration.phase.value,
        started_at=to_time(migration.created_at),
        phase_started_at=to_time(migration.phase_since),
        rolling_back=migration.rolling_back,
        from_=revision_to_wire(migration.source),
        to=revision_to_wire(migration.target),
        predicted=estimate_to_wire(migration.predicted),
        predicted_cost_per_million_samples=estimate_to_wire(migration.predicted_cost),
        baseline_samples_per_second=_number(migration.baseline),
        baseline_cost_per_million_samples=_number(migration.baseline_cost),
        checkpoint_before=None if saved_before is None else to_time_not_before(saved_before),
        checkpoint_at=_time(migration.saved_at),
        abandoned=None if migration.abandoned is None else revision_to_wire(migration.abandoned),
        stopped_at=_time(migration.stopped_at),
        running_at=_time(migration.running_at),
        lost_seconds=_number(migration.lost_seconds),
        realised_samples_per_second=_number(migration.realised),
        realised_cost_per_million_samples=_number(migration.realised_cost),
        failure=None if migration.failure is None else migration.failure.value,
        failure_message=migration.failure_message,
        reason=migration.reason.value,
        message=migration.message,
    )


def migration_from_wire(status: wire.MigrationStatus) -> Migration:
    """The migration that a status tells of."""
    if status.rolling_back and status.abandoned is None:
        raise ValueError("migration.rollingBack is true and migration.abandoned is missing")
    return Migration(
        id=status.id,
        action=_known(Action, status.action, "migration.action"),
        phase=_known(Phase, status.phase, "migration.phase"),
        source=revision_from_wire(status.from_),
        target=revision_from_wire(status.to),
        created_at=from_time(status.started_at),
        phase_since=from_time(status.phase_started_at),
        reason=_known(Reason, status.reason, "migration.reason"),
        message=status.message,
        predicted=estimate_from_wire(status.predicted),
        predicted_cost=estimate_from_wire(status.predicted_cost_per_million_samples),
        baseline=_float(status.baseline_samples_per_second),
        baseline_cost=_float(status.baseline_cost_per_million_samples),
        rolling_back=status.rolling_back,
        abandoned=None if status.abandoned is None else revision_from_wire(status.abandoned),
        saved_before=_seconds(status.checkpoint_before),
        saved_at=_seconds(status.checkpoint_at),
        stopped_at=_seconds(status.stopped_at),
        running_at=_seconds(status.running_at),
        lost_seconds=_float(status.lost_seconds) or 0.0,
        realised=_float(status.realised_samples_per_second),
        realised_cost=_float(status.realised_cost_per_million_samples),
        failure=None if status.failure is None else _known(Reason, status.failure, "migration.failure"),
        failure_message=status.failure_message,
    )


def _entry_to_wire(entry: LedgerEntry) -> wire.LedgerEntry:
    return wire.LedgerEntry(
        id=entry.id,
        action=entry.action,
        from_=placement_to_wire(entry.source),
        to=placement_to_wire(entry.target),
        predicted_samples_per_second=_number(entry.predicted_samples_per_second),
        predicted_cost_per_million_samples=_number(entry.predicted_cost_per_million),
        baseline_samples_per_second=_number(entry.baseline_samples_per_second),
        baseline_cost_per_million_samples=_number(entry.baseline_cost_per_million),
        realised_samples_per_second=_number(entry.realised_samples_per_second),
        realised_cost_per_million_samples=_number(entry.realised_cost_per_million),
        started_at=to_time(entry.started_at),
        finished_at=to_time(entry.finished_at),
        outcome=wire.Outcome(entry.outcome.value),
        reason=str(entry.reason),
        message=entry.message,
        cost=_money(entry.cost),
        lost_seconds=_number(entry.lost_seconds),
    )


def _entry_from_wire(entry: wire.LedgerEntry) -> LedgerEntry | None:
    if entry.from_ is None or entry.to is None:
        return None
    return LedgerEntry(
        id=entry.id,
        action=entry.action,
        source=_placement(entry.from_),
        target=_placement(entry.to),
        predicted_samples_per_second=_float(entry.predicted_samples_per_second),
        predicted_cost_per_million=_float(entry.predicted_cost_per_million_samples),
        baseline_samples_per_second=_float(entry.baseline_samples_per_second),
        baseline_cost_per_million=_float(entry.baseline_cost_per_million_samples),
        realised_samples_per_second=_float(entry.realised_samples_per_second),
        realised_cost_per_million=_float(entry.realised_cost_per_million_samples),
        started_at=_seconds(entry.started_at) or 0.0,
        finished_at=_seconds(entry.finished_at) or 0.0,
        outcome=Outcome(entry.outcome.value),
        reason=entry.reason,
        message=entry.message,
        lost_seconds=_float(entry.lost_seconds) or 0.0,
        cost=_float(entry.cost) or 0.0,
    )


def account_to_wire(account: Account, per_million: float | None = None) -> wire.CostStatus | None:
    """Absent while nothing was ever spent, to the last digit that is kept: a zero would read as a measurement."""
    status = wire.CostStatus(
        per_hour=_number(account.cost_per_hour),
        per_million_samples=None if per_million is None else format_money(per_million),
        spent=_money(account.spent),
        saved=_money(account.saved),
        as_of=_time(account.since),
        saving_per_hour=_number(account.saving_per_hour),
        unpriced_seconds=_number(account.unpriced_seconds) if account.unpriced_seconds else None,
    )
    return None if account_from_wire(status) == Account() else status


def account_from_wire(status: wire.CostStatus | None) -> Account:
    """The account that a status tells of."""
    if status is None:
        return Account()
    return Account(
        spent=_float(status.spent) or 0.0,
        saved=_float(status.saved) or 0.0,
        since=_seconds(status.as_of),
        cost_per_hour=_float(status.per_hour),
        saving_per_hour=_float(status.saving_per_hour) or 0.0,
        unpriced_seconds=_float(status.unpriced_seconds) or 0.0,
    )


# --- the whole -------------------------------------------------------------------------------------------------------


def persisted_fields(job: JobState, per_million: float | None = None) -> dict[str, Any]:
    """Fields of ProfiledJobStatus that carry the state. `finished` is in the conditions, which are made elsewhere."""
    return {
        "placement": None if job.ref is None else revision_to_wire(job.ref),
        "cost": account_to_wire(job.account, per_million),
        "migration": None if job.migration is None else migration_to_wire(job.migration),
        "moves": job.moves,
        "ledger_count": job.decisions,
        "last_move_at": _time(job.last_move_at),
        "avoid": _avoid_to_wire(job.avoid),
        "history": [_entry_to_wire(entry) for entry in job.history[-wire.MAX_HISTORY :]],
    }


def restored_fields(status: wire.ProfiledJobStatus) -> dict[str, Any]:
    """Fields of JobState that a status carries.

    Raises ValueError where a newer operator wrote something that this one does not know: acting on half of a state
    would be worse than not acting.
    """
    return {
        "ref": None if status.placement is None else revision_from_wire(status.placement),
        "account": account_from_wire(status.cost),
        "migration": None if status.migration is None else migration_from_wire(status.migration),
        "moves": status.moves,
        "decisions": status.ledger_count,
        "last_move_at": _seconds(status.last_move_at),
        "avoid": tuple(
            AvoidedPlacement(avoided.pool, avoided.chips, avoided.reason, _seconds(avoided.until))
            for avoided in status.avoid
        ),
        "history": tuple(entry for entry in map(_entry_from_wire, status.history) if entry is not None),
        "finished": next(
            (how for how, kind in _TERMINAL.items() if _is_true(status, kind)),
            None,
        ),
    }


def _avoid_to_wire(avoid: Iterable[AvoidedPlacement]) -> list[wire.AvoidedPool]:
    newest = list(avoid)[-MAX_AVOID:]
    return [wire.AvoidedPool(pool=a.pool, chips=a.chips, reason=a.reason, until=_time(a.until)) for a in newest]


def _is_true(status: wire.ProfiledJobStatus, kind: ConditionType) -> bool:
    condition = find_condition(status.conditions, kind)
    return condition is not None and condition.status == "True"
