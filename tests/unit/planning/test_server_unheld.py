"""A limit that no place keeps: a server goes where it misses it by less, and back where it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.intent import Intent
from rightpool.planning.work.server import HELD_WINDOWS
from rightpool.profiles.served import Sides
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import AUTO, NOW, changed, decided_text, judged
from tests.unit.planning.test_server_move import batched, window
from tests.unit.planning.test_server_offers import POOLS, SEEN, server, sized

SLOW = SEEN._replace(seconds=SEEN.seconds * 3.0)


def unheld(p99: str = "5ms") -> Job:
    """One on slow chips, of which a request by itself takes 33 ms; elsewhere it was timed with 11 ms."""
    job = server(p99=p99)
    ref = job.state.revision
    assert ref is not None
    there = replace(ref, placement=replace(ref.placement, pool="a10g"), chip="A10G-24GB")
    job = job.with_state(replace(job.state, revision=there))
    return changed(job, sizing=sized(job, POOLS, {"a10g": SLOW, "a100": SEEN}))


def test_it_goes_where_batches_of_any_size_are_clearly_shorter() -> None:
    found = judged(unheld(), POOLS)
    assert (found.intent, found.decision.action) == (Intent.REPAIR, Action.MOVE)
    assert found.decision.reason is Reason.BETTER_TARGET_UNREACHABLE
    target = found.decision.target
    assert target is not None and (target.pool, target.replicas) == ("a100", 3)
    text = decided_text(found)
    assert "batches take 33% of their time, because now one request by itself takes 33 ms" in text and len(text) <= 200


def test_it_stays_where_none_is() -> None:
    job = server(p99="5ms")
    assert judged(job, POOLS).decision.reason is Reason.NO_FEASIBLE_POOL, "elsewhere it is slower"
    alike = SEEN._replace(seconds=SEEN.seconds * 0.95)
    again = changed(job, sizing=sized(job, POOLS, {"a10g": alike}))
    assert judged(again, POOLS).decision.reason is Reason.NO_FEASIBLE_POOL, "hardly shorter"


def test_where_a_place_keeps_the_limit_it_goes_nowhere_else() -> None:
    found = judged(unheld("30ms"), POOLS)
    assert found.decision.action is Action.MOVE and found.decision.reason is not Reason.BETTER_TARGET_UNREACHABLE


@pytest.mark.parametrize(
    ("longer", "outcome", "reason"),
    [(1.0, Outcome.VERIFIED, Reason.DELIVERED), (3.6, Outcome.ROLLED_BACK, Reason.TOO_LATE)],
    ids=("as promised", "longer than where it was"),
)
def test_its_batches_say_whether_it_is_better_there(longer: float, outcome: Outcome, reason: Reason) -> None:
    """All requests are later than the limit on both sides."""
    job = unheld()
    for now in (NOW, NOW + 15.0):
        job = advance(job, judged(job, POOLS), AUTO, now, decision_text)
    now = NOW + 60.0
    while (migration := job.state.migration) is not None and now < NOW + 2.0 * HELD_WINDOWS * 300.0:
        promise, up = migration.batches, migration.up or migration.target.placement.replicas
        assert promise is not None
        took = longer * (promise.fixed + 4.0 * promise.each)
        new = [batched(window(200, 200, at=migration.phase_since + 15.0 * n), took) for n in (1, 2, 3)]
        states = {1: job.observed.revisions[1], 2: RevisionState(2, True, active=up, running=up)}
        job = changed(job, revisions=states, sides=tuple(Sides(one, window(200, 200, at=one.at)) for one in new))
        now += 60.0
        job = advance(job, judged(job, POOLS), AUTO, now, decision_text)
    entry = job.state.history[-1]
    assert (entry.outcome, entry.reason) == (outcome, reason), entry.message
    assert entry.message is not None and "times as long as" in entry.message and len(entry.message) <= 160
