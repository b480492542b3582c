"""Jobs in a table: their placement, bottleneck and cost, in lines and as a document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from rightpool.api.conditions import ConditionType, Reason, find_condition
from rightpool.api.ledger import LedgerEntry, Outcome, measured_cost_per_million
from rightpool.api.units import write_unix_time
from rightpool.api.value_object import value_object
from rightpool.api.wording import cents, dollars, number, share, short_place, span
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.documents import document_head, place_document
from rightpool.cli.jobs import no_jobs_text
from rightpool.cli.state import holds_chips, state_of
from rightpool.cli.table import NOTHING, Column, Page, dollar_cell
from rightpool.reporting.offer import Offer, offer_of
from rightpool.reporting.stored_job import StoredJob


@value_object
class Line:
    """One job. Money is in dollars; None means unknown."""

    namespace: str
    """Where the ProfiledJob is."""
    name: str
    """Of the ProfiledJob."""
    state: str
    """In a word or two, as column STATE has it."""
    pool: str | None
    """Where it is; None while it has no place."""
    chips: int | None
    """How many it has, of all pods; None while it has no place."""
    capacity: str | None
    """On-demand or spot."""
    throughput: float | None
    """Units of work a second."""
    cost_per_hour: float | None
    """Of the chips that it has."""
    cost_per_million: float | None
    """Of a million units of work."""
    bottleneck: str | None
    """None before it is diagnosed."""
    spent: float | None
    """Since the beginning."""
    saved: float | None
    """By its moves, negative where they lost; None where it was never moved."""
    targets: str | None = None
    """Reason of the condition TargetsMet; None where it is not there."""
    progress: float | None = None
    """Share of the work that is done, 0 to 1; None where the whole is not known."""
    ends_in: float | None = None
    """Seconds until all samples are done, at the rate of the last reading; negative where that was to be so before."""
    time_left: float | None = None
    """Seconds to the deadline; negative after it."""
    money_left: float | None = None
    """Dollars of the budget; negative where it is exceeded."""
    offer: Offer | None = None
    """None where it has no recommendation."""
    unit: WorkUnit | None = None
    """What throughput and cost_per_million count."""
    promised_per_million: float | None = None
    """Dollars for a million units, by the decision that brought the job where it is."""
    delivered_per_million: float | None = None
    """What was measured after it."""
    promised_unit: WorkUnit | None = None
    """What both count."""

    @property
    def holds_chips(self) -> bool:
        """Whether it holds chips, and so costs money."""
        return self.chips is not None


# The job is where such a decision has brought it.
_STAYED: Final = frozenset({Outcome.VERIFIED, Outcome.FAILED, Outcome.CARRIED_OUT})


def name_units(lines: Iterable[Line]) -> bool:
    """Whether cells name their unit, because not every job is measured in samples."""
    return any(WorkUnit.STEPS in (line.unit, line.promised_unit) for line in lines)


def job_columns(units: bool) -> tuple[Column, ...]:
    """units: see name_units."""
    return (
        Column("NAMESPACE"),
        Column("NAME"),
        Column("POOL"),
        Column("CHIPS", right=True),
        Column("THROUGHPUT" if units else "SAMPLES/S", right=True, drop=3),
        Column("$/H", right=True),
        Column("$/M" if units else "$/M SAMPLES", right=True, drop=2),
        Column("BOTTLENECK", drop=4),
        Column("STATE"),
        Column("TARGETS", drop=6),
        Column("DONE", right=True, drop=7),
        Column("ENDS IN", right=True, drop=8),
        Column("TIME LEFT", right=True, drop=9),
        Column("BUDGET LEFT", right=True, drop=10),
        Column("WOULD GO TO", drop=3),
        Column("SAVES", right=True, drop=3),
        Column("SPENT", right=True, drop=5),
        Column("SAVED", right=True, drop=1),
    )


def ranked(jobs: Iterable[StoredJob], now: float) -> list[Line]:
    """Highest cost first, then by name."""
    lines = [_line(job, now) for job in jobs]
    return sorted(lines, key=lambda line: (-(line.cost_per_hour or 0.0), line.namespace, line.name))


def _line(stored: StoredJob, now: float) -> Line:
    job, status = stored.job, stored.status
    ref = job.state.revision if job.state.finished is None else None
    holds = ref is not None and holds_chips(stored)
    account = job.state.account.settled(now)
    measured = status.measured if holds else None
    throughput = None if measured is None else measured.throughput
    rate, unit = throughput or (None, None)
    hourly = account.cost_per_hour if holds else None
    has_account = not job.state.account.empty
    met = find_condition(status.conditions, ConditionType.TARGETS_MET)
    outlook, targets, ended = status.outlook, job.spec.targets, job.state.finished is not None
    finish_at = None if ended or outlook is None else outlook.finish_at
    brought = _last_move_here(stored) if holds else None
    return Line(
        namespace=job.key.namespace,
        name=job.key.name,
        state=state_of(stored, status),
        pool=None if ref is None else ref.placement.pool,
        chips=account.chips if holds else None,
        capacity=None if ref is None else ref.placement.capacity.value,
        throughput=rate,
        unit=unit,
        cost_per_hour=hourly,
        cost_per_million=None if rate is None or ref is None else measured_cost_per_million(rate, ref.cost_per_hour),
        bottleneck=None if measured is None else measured.bottleneck,
        spent=account.spent if has_account else None,
        saved=account.saved if has_account and job.state.moves else None,
        targets=None if met is None else met.reason,
        progress=None if outlook is None else outlook.progress,
        ends_in=None if finish_at is None else finish_at - now,
        time_left=None if ended or targets.deadline is None else targets.deadline - now,
        money_left=None if ended or targets.budget is None else float(targets.budget) - account.spent,
        offer=offer_of(stored, status) if holds else None,
        promised_per_million=None if brought is None else brought.predicted_cost_per_million,
        delivered_per_million=None if brought is None else brought.realised_cost_per_million,
        promised_unit=None if brought is None else brought.unit,
    )


def _last_move_here(stored: StoredJob) -> LedgerEntry | None:
    """The newest decision that brought the job where it is."""
    ref = stored.job.state.revision
    stayed = (entry for entry in reversed(stored.job.state.history) if entry.outcome in _STAYED)
    newest = next(stayed, None)
    return newest if newest is not None and ref is not None and newest.target == ref.placement else None


def document(lines: list[Line], now: float, notes: Iterable[str] = ()) -> dict[str, Any]:
    """The JSON object described at the head of top.py."""
    return {
        **document_head("JobReport", now),
        "notes": list(notes),
        "jobs": [
            {
                "namespace": line.namespace,
                "name": line.name,
                "state": line.state,
                "pool": line.pool,
                "chips": line.chips,
                "capacity": line.capacity,
                "throughput": line.throughput,
                "unit": None if line.unit is None else line.unit.value,
                "costPerHour": line.cost_per_hour,
                "costPerMillion": line.cost_per_million,
                "bottleneck": line.bottleneck,
                "targets": line.targets,
                "progress": line.progress,
                "finishAt": None if line.ends_in is None else write_unix_time(now + line.ends_in),
                "secondsLeft": line.time_left,
                "dollarsLeft": line.money_left,
                "goesTo": None if line.offer is None else place_document(line.offer.recommendation.placement),
                "savings": None if line.offer is None else line.offer.recommendation.savings,
                "potentialSavingsPerHour": None if line.offer is None else line.offer.dollars_per_hour,
                "spent": line.spent,
                "saved": line.saved,
                "promisedPerMillion": line.promised_per_million,
                "deliveredPerMillion": line.delivered_per_million,
                "promisedUnit": None if line.promised_unit is None else line.promised_unit.value,
            }
            for line in lines
        ],
        "total": {
            "jobs": len(lines),
            "running": sum(line.holds_chips for line in lines),
            "chips": sum(line.chips or 0 for line in lines),
            "costPerHour": sum(line.cost_per_hour or 0.0 for line in lines),
            "potentialSavingsPerHour": sum(
                line.offer.dollars_per_hour or 0.0 for line in lines if line.offer is not None
            ),
            "spent": sum(line.spent or 0.0 for line in lines),
            "saved": sum(line.saved or 0.0 for line in lines),
            "unpriced": sum(line.holds_chips and line.cost_per_hour is None for line in lines),
        },
    }


def print_jobs(page: Page, lines: list[Line], namespace: str | None) -> None:
    """Print the table and its sums. `namespace` is None for all namespaces."""
    if not lines:
        page.line(no_jobs_text(namespace))
        return
    first = 0 if namespace is None else 1
    units = name_units(lines)
    page.table(job_columns(units)[first:], [job_cells(line, units)[first:] for line in lines])
    page.line()
    page.line(jobs_summary(lines))


def jobs_summary(lines: list[Line]) -> str:
    """The sums, in a sentence."""
    total = document(lines, 0.0)["total"]
    text = f"{total['running']} of {total['jobs']} jobs hold {total['chips']} chips"
    text += f" for {dollars(total['costPerHour'])} an hour"
    if total["potentialSavingsPerHour"] >= 0.005:
        text += f"; {dollars(total['potentialSavingsPerHour'])} an hour can be saved by what is recommended"
    if total["saved"]:
        text += f"; moves have saved {cents(total['saved'])}"
    if total["unpriced"]:
        text += f"; {total['unpriced']} without a price are not counted"
    return text


def job_cells(line: Line, units: bool) -> list[str]:
    """As the columns show it. units: see name_units."""
    unit = f" {line.unit.plural}" if units and line.unit is not None else ""

    def total(value: float | None) -> str:
        return NOTHING if value is None else cents(value).replace("$", "")

    return [
        line.namespace,
        line.name,
        NOTHING if line.pool is None else line.pool + (" (spot)" if line.capacity == "Spot" else ""),
        NOTHING if line.chips is None else str(line.chips),
        NOTHING if line.throughput is None else f"{number(line.throughput)}{unit}{'/s' if unit else ''}",
        dollar_cell(line.cost_per_hour),
        dollar_cell(line.cost_per_million, unit),
        line.bottleneck or NOTHING,
        line.state,
        NOTHING if line.targets in (None, Reason.NO_TARGETS) else str(line.targets),
        NOTHING if line.progress is None else share(line.progress),
        NOTHING if line.ends_in is None else span(max(0.0, line.ends_in)),
        NOTHING if line.time_left is None else _signed(line.time_left),
        total(line.money_left),
        NOTHING if line.offer is None else short_place(line.offer.recommendation.placement),
        NOTHING if line.offer is None else _saves(line.offer),
        total(line.spent),
        total(line.saved),
    ]


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0.0 else ''}{span(abs(seconds))}"


def _saves(offer: Offer) -> str:
    savings = offer.recommendation.savings
    return NOTHING if savings is None else share(savings)
