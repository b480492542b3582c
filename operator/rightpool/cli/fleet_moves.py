"""Moves of the fleet: what the operator would do over all jobs, were all that it recommends approved, wave by wave.

With `-o json` or `-o yaml`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, FleetMoveList
    asOf               time of the request, RFC 3339
    notes              what could not be read, sentences
    underWay           moves that are being made, each {namespace, name, from, to}
    waves              the first that can be made first, each a list of {namespace, name, id, from, to,
                       potentialSavingsPerHour, totalPerHour, needsApproval, after}. id is what an approval names, null
                       where the move needs none; from is null of a job that starts; potentialSavingsPerHour is what the
                       work of an hour costs less there, below 0 where it costs more, null where unknown; totalPerHour
                       is the sum up to here; after are the jobs of earlier waves, each {namespace, name}, that leave
                       chips of the pool that it goes to
    leftOut            how many recommendations are not among them, by the reason that holds them back once approved
    potentialSavingsPerHour
                       the sum
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final

from rightpool.api.choices import AdaptationMode
from rightpool.api.value_object import value_object
from rightpool.api.wording import dollars, how_many, short_place
from rightpool.cli.decider import Decider
from rightpool.cli.documents import document_head, place_document
from rightpool.cli.known_fleet import known_fleet
from rightpool.cli.table import NOTHING, Column, Page
from rightpool.cli.view import ClusterView
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.select import adaptation_mode
from rightpool.reporting.offer import potential_savings
from rightpool.simulation.waves import PlannedMove, foreseen

_COLUMNS: Final = (
    Column("WAVE", right=True),
    Column("NAMESPACE"),
    Column("NAME"),
    Column("NOW"),
    Column("WOULD GO TO"),
    Column("$/H", right=True),
    Column("SUM $/H", right=True),
    Column("AFTER", drop=1),
    Column("APPROVAL"),
)
_NOTHING_PLANNED: Final = "the plan moves nothing: every job is where it should be, is held, or is not measured yet"
_NOTHING_MORE: Final = "the plan moves nothing else"


@value_object
class FleetMove:
    """A move that the operator would make."""

    planned: PlannedMove
    """As the plan has it."""
    wave: int
    """From 1 on."""
    saved: float | None
    """Dollars that the work of an hour costs less there; None where that is not known, or nothing runs yet."""
    approval: str | None
    """The id that an approval of it names; None where it needs none."""
    approved: bool
    """Whether its user has approved it."""


@value_object
class FleetMoves:
    """All of them."""

    moves: tuple[FleetMove, ...]
    """The first wave first, in it by name."""
    under_way: tuple[PlannedMove, ...]
    """What is being done already, by name."""
    notes: tuple[str, ...]
    """What could not be read, as sentences."""
    left_out: Mapping[str, int]
    """How many recommendations are not among them, by what holds them back once they are approved."""


def fleet_moves(view: ClusterView, now: float) -> FleetMoves:
    """Ask planning about all jobs that the user may read, as if what is recommended for each were approved."""
    view.children(None)
    stored = view.all_jobs()
    ours = [key for key, one in stored.items() if one.job.spec.managed]
    fleet, notes = known_fleet(view, stored, ours, now)
    offered = {key: one.status.recommendation for key, one in stored.items() if one.job.state.finished is None}
    ids = {key: offer.id for key, offer in offered.items() if offer is not None and key in fleet.jobs}
    asked = {key: replace(fleet.jobs[key], approved=each) for key, each in ids.items()}
    found = foreseen(replace(fleet, jobs={**fleet.jobs, **asked}), Decider())
    moves = []
    for number, wave in enumerate(found.waves, 1):
        for planned in wave:
            job = fleet.jobs[planned.key]
            asks = planned.source is not None and _asks(job, adaptation_mode(job, fleet.policy))
            approval = ids.get(planned.key) if asks else None
            moves.append(FleetMove(planned, number, _saved(planned), approval, approval == job.approved is not None))
    left_out = Counter(found.held[key].value for key in sorted(ids) if key in found.held)
    return FleetMoves(tuple(moves), found.under_way, (*view.notes, *notes), left_out)


def _asks(job: Job, mode: AdaptationMode) -> bool:
    return mode is AdaptationMode.RECOMMEND or job.spec.adaptation.require_approval


def _saved(move: PlannedMove) -> float | None:
    if move.source is None:
        return None
    return potential_savings(move.source.cost_per_hour, move.rate, move.target.cost_per_hour, move.target_rate)


def _sums(found: FleetMoves) -> list[float]:
    """After each move."""
    return list(accumulate(move.saved or 0.0 for move in found.moves))


def moves_document(found: FleetMoves, now: float, notes: Collection[str] = ()) -> dict[str, Any]:
    """The object that this module's head describes."""
    rows: list[list[dict[str, Any]]] = []
    sums = _sums(found)
    for move, total in zip(found.moves, sums, strict=True):
        planned = move.planned
        if move.wave > len(rows):
            rows.append([])
        rows[-1].append(
            {
                **_ends(planned),
                "id": move.approval,
                "potentialSavingsPerHour": move.saved,
                "totalPerHour": total,
                "needsApproval": move.approval is not None and not move.approved,
                "after": [key._asdict() for key in planned.after],
            }
        )
    return {
        **document_head("FleetMoveList", now),
        "notes": [*found.notes, *notes],
        "underWay": [_ends(move) for move in found.under_way],
        "waves": rows,
        "leftOut": dict(found.left_out),
        "potentialSavingsPerHour": sums[-1] if sums else 0.0,
    }


def _ends(move: PlannedMove) -> dict[str, Any]:
    source = None if move.source is None else place_document(move.source.placement)
    return {**move.key._asdict(), "from": source, "to": place_document(move.target.placement)}


def print_moves(page: Page, found: FleetMoves) -> None:
    """The table, its sum, and how to have a wave carried out."""
    rows = [_row(move, NOTHING, [NOTHING, NOTHING, NOTHING, "under way"]) for move in found.under_way]
    sums = _sums(found)
    rows += [_planned_row(move, total) for move, total in zip(found.moves, sums, strict=True)]
    if rows:
        page.table(_COLUMNS, rows)
        page.line()
    page.line(_summary(found.moves, sums[-1]) if sums else _NOTHING_MORE if rows else _NOTHING_PLANNED)
    if found.left_out:
        why = ", ".join(f"{count} by {reason}" for reason, count in sorted(found.left_out.items()))
        page.line(f"recommended, and held back all the same: {why}")
    page.notes(found.notes)


def _summary(moves: Sequence[FleetMove], total: float) -> str:
    done = f"{how_many(len(moves), 'move')} in {how_many(moves[-1].wave, 'wave')}: {dollars(total)} an hour"
    asking = [move.wave for move in moves if move.approval is not None and not move.approved]
    if not asking:
        return f"{done}; none needs an approval"
    return f"{done}; {len(asking)} to be approved: `rightpool approve --wave {asking[0]}`, or some of them by name"


def _planned_row(move: FleetMove, total: float) -> list[str]:
    approval = "by itself" if move.approval is None else "approved" if move.approved else move.approval
    saved = NOTHING if move.saved is None else f"{move.saved:.2f}"
    after = ", ".join(map(str, move.planned.after)) or NOTHING
    return _row(move.planned, str(move.wave), [saved, f"{total:.2f}", after, approval])


def _row(move: PlannedMove, wave: str, rest: list[str]) -> list[str]:
    here = NOTHING if move.source is None else short_place(move.source.placement)
    return [wave, *move.key, here, short_place(move.target.placement), *rest]
