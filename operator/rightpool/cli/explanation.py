"""An explanation as a person reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rightpool.cli.recorded import FIELDS
from rightpool.cli.state import state_of
from rightpool.cli.table import NOTHING, Column, Page
from rightpool.hardware.placement import CapacityType, Placement
from rightpool.planning.assess import adaptation_mode
from rightpool.planning.candidate import Candidate
from rightpool.planning.decision import Action
from rightpool.planning.ledger import LedgerEntry
from rightpool.planning.wording import cents, chips, dollars, gibibytes, number, share, span
from rightpool.profiles.profile import Steadiness
from rightpool.profiles.sample import Field

if TYPE_CHECKING:
    from rightpool.cli.explain import Explanation

# More candidates than anybody reads at once.
SHOWN: Final = 12

_CANDIDATES: Final = (
    Column(""),
    Column("POOL"),
    Column("CHIPS", right=True),
    Column("SAMPLES/S", right=True),
    Column("80% INTERVAL", drop=3),
    Column("$/H", right=True, drop=1),
    Column("$/M SAMPLES", right=True),
    Column("SAVING", right=True),
    Column("P(BETTER)", right=True, drop=2),
    Column("SCALING", right=True, drop=4),
    Column("VERDICT", wraps=True),
)
_HISTORY: Final = (
    Column("ID"),
    Column("ACTION", drop=2),
    Column("FROM"),
    Column("TO"),
    Column("$/M BEFORE", right=True, drop=1),
    Column("PROMISED", right=True),
    Column("DELIVERED", right=True),
    Column("COST", right=True, drop=3),
    Column("OUTCOME", wraps=True),
    Column("ENDED", drop=4),
)


def _seconds(value: float) -> str:
    return f"{number(value)} s" if value >= 1 else f"{number(value * 1000)} ms"


_SAID: Final[Mapping[Field, tuple[str, Callable[[float], str]]]] = {
    Field.SAMPLES_PER_SECOND: ("samples/s", number),
    Field.STEP_SECONDS: ("step", _seconds),
    Field.CHIP_BUSY: ("chip busy", share),
    Field.COMPUTE_ACTIVE: ("compute active", share),
    Field.MATRIX_ACTIVE: ("matrix units", share),
    Field.MEMORY_BANDWIDTH: ("memory bandwidth", share),
    Field.EXPOSED_COMMUNICATION: ("exposed communication", share),
    Field.INPUT_WAIT: ("input wait", share),
    Field.MEMORY_USED: ("memory in use", gibibytes),
    Field.POWER: ("power of a chip", lambda watts: f"{watts:.0f} W"),
}


def print_explanation(page: Page, found: Explanation, *, everything: bool = False) -> None:
    """All sections; what there is nothing to say about is left out. everything: all candidates."""
    job = found.job
    mode = adaptation_mode(job, found.policy).value
    page.line(f"{job.key}: {state_of(job)}", "bold")
    page.line(f"objective {job.spec.targets.objective.value}, adaptation {mode}")
    _placement(page, found)
    _profile(page, found)
    _bottleneck(page, found)
    _candidates(page, found, everything)
    _decision(page, found)
    _history(page, found)
    if found.notes:
        page.heading("Notes")
        for note in found.notes:
            page.indented(note)


def _placement(page: Page, found: Explanation) -> None:
    ref = found.job.ref
    page.heading("Runs on")
    if ref is None:
        page.indented("nothing yet")
        return
    placement = ref.placement
    pool = found.pools.get(placement.pool)
    pairs = [
        ("placement", f"{place(placement)} in {placement.replicas} {'pod' if placement.replicas == 1 else 'pods'}")
    ]
    if pool is not None:
        pairs.append(("accelerator", pool.accelerator.key))
    pairs.append(("price", "unknown" if ref.cost_per_hour is None else f"{dollars(ref.cost_per_hour)} an hour"))
    since = "not all pods have run yet" if ref.since is None else f"for {span(found.now - ref.since)}"
    pairs.append(("revision", f"{ref.revision}, {since}"))
    account = found.job.account.settled(found.now)
    if found.stored.status.cost is not None:
        saved = f", {cents(account.saved)} saved by moves" if found.job.moves else ""
        pairs.append(("so far", f"{cents(account.spent)} spent{saved}"))
    page.pairs(pairs)


def _profile(page: Page, found: Explanation) -> None:
    profile, recorded = found.job.profile, found.stored.status.profile
    page.heading("Does")
    if profile is None or recorded is None or not profile.readings:
        page.indented("nothing was measured yet" if found.job.ref is not None else "it does not run")
        return
    known = [field for field in _SAID if field in profile.readings]
    page.pairs((_SAID[field][0], _SAID[field][1](profile.readings[field].value)) for field in known)
    told = [f"over {span(profile.window)}", f"quality {recorded.quality}"]
    if profile.newest is not None:
        told.append(f"measured {span(max(0.0, found.now - profile.newest))} ago")
    if profile.steadiness is not Steadiness.STEADY:
        told.append(f"not to be relied on: {profile.steadiness.value}")
    page.indented(", ".join(told), "dim")
    missing = [_SAID[field][0] for field in FIELDS.values() if field not in profile.readings]
    if missing:
        page.indented(f"not measured: {', '.join(missing)}", "dim")


def _bottleneck(page: Page, found: Explanation) -> None:
    diagnosis = found.job.diagnosis
    if diagnosis is None:
        return
    page.heading(f"Limited by {diagnosis.bottleneck.value}")
    if diagnosis.evidence:
        page.indented(diagnosis.evidence)
    if diagnosis.lever:
        page.indented(f"what helps: {diagnosis.lever}")


def _candidates(page: Page, found: Explanation, everything: bool) -> None:
    assessment = found.assessment
    candidates = list(assessment.candidates)
    page.heading("Could be")
    if not candidates and assessment.current is None:
        page.indented("no candidates: see the decision")
        return
    shown = candidates if everything or len(candidates) <= SHOWN + 2 else candidates[:SHOWN]
    target = assessment.decision.target
    rows = [] if assessment.current is None else [_row("now", assessment.current, current=True)]
    rows += [_row("→" if candidate.placement == target else "", candidate) for candidate in shown]
    page.table(_CANDIDATES, rows, indented=True)
    reasons = _why_not(shown)
    if reasons:
        page.line()
        page.pairs(reasons)
    if len(shown) < len(candidates):
        page.indented(f"and {len(candidates) - len(shown)} more: --all", "dim")


def _row(mark: str, candidate: Candidate, *, current: bool = False) -> list[str]:
    rate, cost = candidate.samples_per_second, candidate.cost_per_million
    if candidate.rejection is not None:
        verdict = candidate.rejection.reason.value
    else:
        verdict = "" if current else "Eligible"
    spot = " (spot)" if candidate.placement.capacity is CapacityType.SPOT else ""
    return [
        mark,
        candidate.placement.pool + spot,
        str(candidate.placement.chips),
        NOTHING if rate is None else number(rate.median),
        NOTHING if rate is None or rate.sd == 0.0 else f"{number(rate.low)}–{number(rate.high)}",
        NOTHING if candidate.cost_per_hour is None else f"{candidate.cost_per_hour:.2f}",
        NOTHING if cost is None else dollars(cost.median).replace("$", ""),
        NOTHING if candidate.saving is None or current else share(candidate.saving),
        NOTHING if candidate.probability is None else f"{candidate.probability:.2f}",
        NOTHING if candidate.scaling_efficiency is None else share(candidate.scaling_efficiency),
        verdict,
    ]


def _why_not(candidates: Sequence[Candidate]) -> list[tuple[str, str]]:
    """Each reason once, with the placements that it holds for."""
    holds_for: dict[str, list[Placement]] = {}
    for candidate in candidates:
        if candidate.rejection is not None:
            holds_for.setdefault(candidate.rejection.message, []).append(candidate.placement)
    told = []
    for message, placements in holds_for.items():
        by_pool: dict[str, list[str]] = {}
        for placement in placements:
            by_pool.setdefault(placement.pool, []).append(str(placement.chips))
        told.append((", ".join(f"{pool} {'/'.join(counts)}" for pool, counts in by_pool.items()), message))
    return told


def _decision(page: Page, found: Explanation) -> None:
    decision = found.assessment.decision
    page.heading(f"Decision: {decision.action.value} ({decision.reason.value})")
    page.indented(decision.message)
    migration = found.job.migration
    if migration is not None:
        since = span(max(0.0, found.now - migration.phase_since))
        page.indented(f"{migration.id} has been in phase {migration.phase.value} for {since}: {migration.message}")
    recommendation = found.stored.status.recommendation
    if recommendation is not None and decision.action in (Action.HOLD, Action.KEEP):
        page.indented(f"the operator recommends {recommendation.id}: {recommendation.message}", "dim")


def _history(page: Page, found: Explanation) -> None:
    history = found.job.history
    if not history:
        return
    page.heading("History, $ per million samples")
    page.table(_HISTORY, [_entry(entry, found.now) for entry in reversed(history)], indented=True)


def _entry(entry: LedgerEntry, now: float) -> list[str]:
    def money(value: float | None) -> str:
        return NOTHING if value is None else dollars(value).replace("$", "")

    outcome = entry.outcome.value if entry.outcome.value == entry.reason else f"{entry.outcome.value} ({entry.reason})"
    return [
        entry.id,
        entry.action,
        _short(entry.source),
        _short(entry.target),
        money(entry.baseline_cost_per_million),
        money(entry.predicted_cost_per_million),
        money(entry.realised_cost_per_million),
        money(entry.cost or None),
        outcome,
        f"{span(max(0.0, now - entry.finished_at))} ago",
    ]


def place(placement: Placement) -> str:
    """8 chips of a10g, spot."""
    spot = " (spot)" if placement.capacity is CapacityType.SPOT else ""
    return f"{chips(placement.chips)} of {placement.pool}{spot}"


def _short(placement: Placement) -> str:
    """4×a10g."""
    spot = " (spot)" if placement.capacity is CapacityType.SPOT else ""
    return f"{placement.chips}×{placement.pool}{spot}"
