"""An explanation as a person reads it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.conditions import ConditionType, Reason, find_condition
from rightpool.api.ledger import LedgerEntry
from rightpool.api.placement import Placement
from rightpool.api.premise import Premise
from rightpool.api.program_edit import EditVerdict
from rightpool.api.wording import cents, dollars, how_many, number, place, pool_of, share, short_place, span
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.decided import decided
from rightpool.cli.explained import Explanation
from rightpool.cli.profile_fields import (
    contradictions,
    nothing_measured,
    print_bottleneck,
    profile_fields,
    profile_remarks,
    unmeasured_fields,
)
from rightpool.cli.served import print_answers, server_columns, server_remark, server_row
from rightpool.cli.state import holds_chips, state_of
from rightpool.cli.table import NOTHING, Column, Page, dollar_cell
from rightpool.planning.jobs.job import unit_of
from rightpool.planning.jobs.time_limits import sized_limits
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.select import adaptation_mode
from rightpool.reporting.candidate_texts import verdict_text
from rightpool.reporting.forecast_texts import forecast_text
from rightpool.reporting.premise_texts import premise_text
from rightpool.reporting.stored_job import StoredJob

# Titles of sections that the page adds a drawing to.
DOES: Final = "Does"
COULD_BE: Final = "Could be"
ANSWERS: Final = "Answers"
# More candidates than anybody reads at once.
SHOWN: Final = 12
# Of so many it is said what they were predicted from: the chosen one and the best.
DERIVED: Final = 3

_LIST: Final = (
    Column("NAME"),
    Column("STATE"),
    Column("PLACED ON"),
    Column("DECISION"),
    Column("WHY", wraps=True),
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


def _candidate_columns(unit: WorkUnit) -> tuple[Column, ...]:
    counted = unit.value.upper()
    return (
        Column(""),
        Column("POOL"),
        Column("CHIPS", right=True),
        Column(f"{counted}/S", right=True),
        Column("80% INTERVAL", drop=3),
        Column("$/H", right=True, drop=1),
        Column(f"$/M {counted}", right=True),
        Column("SAVING", right=True),
        Column("P(BETTER)", right=True, drop=2),
        Column("SCALING", right=True, drop=4),
        Column("VERDICT", wraps=True),
    )


def print_explanation(page: Page, found: Explanation, *, everything: bool = False) -> None:
    """All sections, the decision and why first; what there is nothing to say about is left out.

    everything: all candidates.
    """
    job = found.job
    mode = adaptation_mode(job, found.policy).value
    page.line(f"{job.key}: {state_of(found.stored, found.stored.status)}", "bold")
    page.line(f"objective {job.spec.targets.objective.value}, adaptation {mode}")
    _condition(page, found)
    if found.job.state.finished is None:
        _decision(page, found)
    _placement(page, found)
    _targets(page, found)
    served = job.spec.workload.server is not None
    if served:
        print_answers(page, found, ANSWERS)
    if not served or job.observed.profile is not None:
        _profile(page, found)
    print_bottleneck(page, found)
    _edit(page, found)
    _report(page, found)
    if found.job.state.finished is None:
        _candidates(page, found, everything)
        if found.serving is not None:
            from rightpool.cli.serving import print_serving

            print_serving(page, found.serving)
    _history(page, found)
    page.notes(found.notes)


def print_list(
    page: Page, listed: Sequence[tuple[StoredJob, Assessment]], quiet: str | None, now: float, namespace: str
) -> None:
    """Each job of the namespace in a line. quiet: that no operator leads."""
    if listed:
        page.table(_LIST, [_listed(stored, assessment, now) for stored, assessment in listed])
    else:
        page.line(f"there are no ProfiledJobs in namespace {namespace}; `rightpool top -A` lists all")
    page.remark(quiet)


def _listed(stored: StoredJob, assessment: Assessment, now: float) -> list[str]:
    ref, status = stored.job.state.revision, stored.status
    decision, _ = decided(stored, stored.job, assessment, now)
    placed = find_condition(status.conditions, ConditionType.PLACED)
    text = decision.message if placed is None or placed.reason == Reason.RUNNING else placed.message
    return [
        stored.job.key.name,
        state_of(stored, status),
        NOTHING if ref is None or stored.job.state.finished else short_place(ref.placement),
        f"{decision.action.value} ({decision.reason})",
        text,
    ]


def _placement(page: Page, found: Explanation) -> None:
    ref = found.job.state.revision
    if ref is None:
        page.heading("Runs on")
        page.indented("nothing yet")
        return
    if found.job.state.finished is not None:
        page.heading("Ran on")
    else:
        page.heading("Runs on" if holds_chips(found.stored) else "Placed on, and holds no chips now")
    placement = ref.placement
    pool = found.pools.get(placement.pool)
    pairs = [("placement", f"{place(placement)} in {how_many(placement.replicas, 'pod')}")]
    if pool is not None:
        pairs.append(("accelerator", pool.accelerator.key))
    if found.job.variant(ref.vendor) is not None:
        pairs.append(("template", f"with the variant for {ref.vendor}"))
    pairs.append(("price", "unknown" if ref.cost_per_hour is None else f"{dollars(ref.cost_per_hour)} an hour"))
    since = "not all pods have run yet" if ref.since is None else f"for {span(max(0.0, _until(found) - ref.since))}"
    pairs.append(("revision", f"{ref.revision}, {since}"))
    account = found.job.state.account.settled(found.now)
    if not found.job.state.account.empty:
        saved = f", {saved_text(account)} saved by moves" if found.job.state.moves else ""
        pairs.append(("so far", f"{cents(account.spent)} spent{saved}"))
    page.pairs(pairs)


def _until(found: Explanation) -> float:
    """Up to when the job has run, Unix seconds: now, or when it ended or stopped."""
    if holds_chips(found.stored):
        return found.now
    kinds = (ConditionType.COMPLETED, ConditionType.FAILED, ConditionType.PLACED)
    conditions = (find_condition(found.stored.status.conditions, kind) for kind in kinds)
    at = next((one.last_transition_time for one in conditions if one is not None), None)
    return found.now if at is None else at


def saved_text(account: Account) -> str:
    """What moves have saved, with an 80% interval: what the job would do without them is not known for certain."""
    low, high = account.saved_range
    return cents(account.saved) if high - low < 0.005 else f"{cents(account.saved)} ({cents(low)} to {cents(high)})"


def _condition(page: Page, found: Explanation) -> None:
    """Why it does not run, or how it ended."""
    for kind in (ConditionType.FAILED, ConditionType.COMPLETED, ConditionType.PLACED):
        condition = find_condition(found.stored.status.conditions, kind)
        if condition is not None and condition.reason != Reason.RUNNING and condition.message:
            page.indented(condition.message)
            return


def _targets(page: Page, found: Explanation) -> None:
    met = find_condition(found.stored.status.conditions, ConditionType.TARGETS_MET)
    ended = found.job.state.finished is not None  # what is left then says nothing of whether it was in time
    if met is None or met.reason == Reason.NO_TARGETS:
        if found.rest.progress is not None and not ended:
            page.heading("Progress")
            page.indented(forecast_text(found.rest, found.now))
        return
    holds = {"True": "hold", "False": "do not hold"}.get(met.status, "are not known to hold")
    page.heading(f"Targets {holds} ({met.reason})")
    page.indented(met.message if ended else forecast_text(found.rest, found.now) or met.message)


_EDITED: Final = {
    EditVerdict.IMPROVED: "faster",
    EditVerdict.NO_WORSE: "no slower",
    EditVerdict.REGRESSED: "slower",
    EditVerdict.UNKNOWN: "not known to be faster or slower",
}


def _edit(page: Page, found: Explanation) -> None:
    """How what runs compares with what ran before its last edit."""
    edit = found.job.state.judged_edit
    if edit is not None:
        page.heading(f"Since the edit: {_EDITED[edit.verdict]}")
        page.indented(edit.message)
    elif found.job.state.edit_to_judge is not None:
        page.heading("Since the edit: not known yet")
        page.indented("it is compared with what ran before, at the latest 24 windows after its start")


def _report(page: Page, found: Explanation) -> None:
    """What came of a job that has ended, and what to try next time."""
    job, diagnosis = found.job, found.job.observed.diagnosis
    if job.state.finished is None:
        return
    account = job.state.account.settled(found.now)
    page.heading("Report")
    saved = f"; moves saved {saved_text(account)}" if job.state.moves else "; it was never moved"
    page.indented(f"{cents(account.spent)} spent{saved}")
    bottleneck = None if found.stored.status.profile is None else found.stored.status.profile.bottleneck
    if bottleneck is not None:
        page.indented(f"limited by {bottleneck} when it was last measured")
    if diagnosis is not None and (lever := diagnosis.finding.lever()):
        page.indented(f"to try next: {lever}")


def _profile(page: Page, found: Explanation) -> None:
    page.heading(DOES)
    why = nothing_measured(found)
    if why is not None:
        page.indented(why)
        return
    page.pairs((each.title, each.text) for each in profile_fields(found))
    page.indented(profile_remarks(found), "dim")
    missing = [title for _, title, _ in unmeasured_fields(found)]
    if missing:
        page.indented(f"not measured: {', '.join(missing)}", "dim")
    left_out = contradictions(found)
    if left_out is not None:
        page.indented(left_out)


def _candidates(page: Page, found: Explanation, everything: bool) -> None:
    assessment, (decision, _) = found.assessment, found.decisions
    candidates = list(assessment.candidates)
    page.heading(COULD_BE)
    if not candidates and assessment.current is None:
        page.indented("no candidates: see the decision")
        return
    shown = candidates if everything or len(candidates) <= SHOWN + 2 else candidates[:SHOWN]
    target = decision.target
    limits = sized_limits(found.job.spec.targets) if found.job.spec.workload.server is not None else {}
    columns = server_columns(limits) if limits else _candidate_columns(unit_of(found.job))
    row = partial(server_row, limits) if limits else _row
    rows = [] if assessment.current is None else [row("now", assessment.current, current=True)]
    rows += [row("→" if candidate.placement == target else "", candidate) for candidate in shown]
    page.table(columns, rows, indented=True)
    if limits:
        page.indented(server_remark(limits), "dim")
    reasons = [*_variants_used(found, shown), *_why_not(shown)]
    if reasons:
        page.line()
        page.pairs(reasons)
    if len(shown) < len(candidates):
        page.indented(f"and {len(candidates) - len(shown)} more: --all", "dim")
    origins = _derived_from(found)
    if origins:
        page.line()
        page.indented("predicted from", "dim")
        page.pairs(origins)


def _row(mark: str, candidate: Candidate, *, current: bool = False) -> list[str]:
    rate, cost = candidate.throughput, candidate.cost_per_million
    if candidate.rejection is not None:
        verdict = candidate.rejection.reason.value
    else:
        verdict = "" if current else "Eligible"
    return [
        mark,
        pool_of(candidate.placement),
        str(candidate.placement.chips),
        NOTHING if rate is None else number(rate.median),
        NOTHING if rate is None or rate.sd == 0.0 else f"{number(rate.low)}–{number(rate.high)}",
        NOTHING if candidate.cost_per_hour is None else f"{candidate.cost_per_hour:.2f}",
        dollar_cell(None if cost is None else cost.median),
        NOTHING if candidate.saving is None or current else share(candidate.saving),
        NOTHING if candidate.probability is None else f"{candidate.probability:.2f}",
        NOTHING if candidate.scaling_efficiency is None else share(candidate.scaling_efficiency),
        verdict,
    ]


def _variants_used(found: Explanation, candidates: Sequence[Candidate]) -> list[tuple[str, str]]:
    """Pools where the job would run by a variant."""
    pools: dict[str, list[str]] = {}
    for candidate in candidates:
        if candidate.vendor is not None and found.job.variant(candidate.vendor) is not None:
            pools.setdefault(candidate.vendor, []).append(candidate.placement.pool)
    return [
        (", ".join(dict.fromkeys(names)), f"template with the variant for {vendor}") for vendor, names in pools.items()
    ]


def _derived_from(found: Explanation) -> list[tuple[str, str]]:
    """What the rates of the chosen candidate and of the best others were derived from, those of one origin together."""
    target = found.decisions[0].target
    known = [one for one in found.assessment.candidates if one.throughput is not None and one.throughput.basis]
    known.sort(key=lambda one: (one.placement != target, one.rejection is not None))
    by_origin: dict[tuple[Premise, ...], list[Placement]] = {}
    for candidate in known[:DERIVED]:
        assert candidate.throughput is not None
        by_origin.setdefault(candidate.throughput.basis, []).append(candidate.placement)
    return [(_places(places), "; ".join(map(premise_text, basis))) for basis, places in by_origin.items()]


def _places(placements: Sequence[Placement]) -> str:
    """Pools, with the numbers of chips of each."""
    by_pool: dict[str, list[str]] = {}
    for placement in placements:
        by_pool.setdefault(placement.pool, []).append(str(placement.chips))
    return ", ".join(f"{pool} {'/'.join(counts)}" for pool, counts in by_pool.items())


def _why_not(candidates: Sequence[Candidate]) -> list[tuple[str, str]]:
    """Each reason once, with the placements that it holds for."""
    holds_for: dict[str, list[Placement]] = {}
    for candidate in candidates:
        if candidate.rejection is not None:
            holds_for.setdefault(verdict_text(candidate), []).append(candidate.placement)
    return [(_places(placements), message) for message, placements in holds_for.items()]


def _decision(page: Page, found: Explanation) -> None:
    decision, anew = found.decisions
    page.heading(f"Decision: {decision.action.value} ({decision.reason})")
    page.indented(decision.message)
    if anew is not None:
        page.indented(
            f"evaluated now, it would be {anew.action.value} ({anew.reason}): {anew.message}; the operator goes by its "
            "own decision until it evaluates the job again"
        )
    if found.outbid is not None and decision.reason != Reason.OUTBID:  # else it says so itself
        page.indented(found.outbid.text(found.now))
    migration = found.job.state.migration
    if migration is not None:
        since = span(max(0.0, found.now - migration.phase_since))
        why = migration.failure_message or migration.message
        page.indented(f"{migration.id} has been in phase {migration.phase.value} for {since}: {why}")
    recommendation = found.stored.status.recommendation
    if recommendation is not None and decision.action in (Action.HOLD, Action.KEEP):
        page.indented(f"the operator recommends {recommendation.id}: {recommendation.message}", "dim")


def _history(page: Page, found: Explanation) -> None:
    history = found.job.state.history
    if not history:
        return
    units = {entry.unit for entry in history}
    page.heading(f"History, $ per million {' or '.join(sorted(unit.plural for unit in units))}")
    rows = [_entry(entry, found.now, named=len(units) > 1) for entry in reversed(history)]
    page.table(_HISTORY, rows, indented=True)


def _entry(entry: LedgerEntry, now: float, *, named: bool) -> list[str]:
    """named: whether the costs name their unit."""
    unit = f" {entry.unit.plural}" if named else ""
    outcome = entry.outcome.value if entry.outcome.value == entry.reason else f"{entry.outcome.value} ({entry.reason})"
    return [
        entry.id,
        entry.action,
        short_place(entry.source),
        short_place(entry.target),
        dollar_cell(entry.baseline_cost_per_million, unit),
        dollar_cell(entry.predicted_cost_per_million, unit),
        dollar_cell(entry.realised_cost_per_million, unit),
        dollar_cell(entry.cost or None),
        outcome,
        f"{span(max(0.0, now - entry.finished_at))} ago",
    ]
