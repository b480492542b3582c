"""A move of a server: its requests go over by steps, each by what both sides have answered, and back at any time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.action import Action
from rightpool.api.choices import Autoscaler
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import BatchPromise, Migration, Phase
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.commands import DirectTraffic, EndRevision, EnsureRevision, commands
from rightpool.planning.moves.shares import SLOWEST, first_share, next_share
from rightpool.planning.moves.surge import LONGEST_JUDGED_SECONDS, LONGEST_SURGE_SECONDS
from rightpool.planning.moves.transitions import advance
from rightpool.planning.work.server import HELD_WINDOWS
from rightpool.profiles.latency import Distribution
from rightpool.profiles.served import RequestCounter, RequestTime, ServedWindow, ServerCounts, Sides
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import AUTO, NOW, changed, spec
from tests.unit.planning.test_surge import TEMPLATE, ended, server

LIMIT = 0.05


def window(requests: float, late: float = 0, failed: float = 0, *, at: float = NOW + 15) -> ServedWindow:
    times = {RequestTime.WHOLE: Distribution((LIMIT,), (requests - late,), requests)}
    counters = {RequestCounter.REQUESTS: requests, RequestCounter.ERRORS: failed}
    return ServedWindow(at, 15.0, ServerCounts(counters, times, {}), 1, True)


def sides(new: ServedWindow, old: ServedWindow | None) -> tuple[Sides, ...]:
    """Three blocks of the same."""
    return tuple(Sides(replaced(new, 15.0 * n), old and replaced(old, 15.0 * n)) for n in range(3))


def replaced(one: ServedWindow, later: float) -> ServedWindow:
    return ServedWindow(one.at + later, one.seconds, one.counts, one.replicas, one.complete)


def moving(new: int = 4, old: int = 2, *, metrics: bool = True, action: Action = Action.MOVE) -> Job:
    """A server whose move was decided."""
    job = server()
    workload: dict[str, Any] = {"chipsPerReplica": 2, "replicas": {"min": old}, "port": 8000, "template": TEMPLATE}
    targets = {"latency": {"p99": "50ms"}} if metrics else {}
    workload |= {"metrics": {"port": 8002}} if metrics else {}
    made = spec(workload={"server": workload}, elasticity={}, checkpoint={}, progress=None, targets=targets)
    here = job.state.revision
    assert here is not None
    place = replace(here.placement, chips=2 * old, replicas=old)
    here = replace(here, placement=place, requested_chips=2 * old, requested_replicas=old)
    there = replace(here, revision=2, placement=replace(here.placement, pool="l40s", chips=2 * new, replicas=new))
    migration = Migration(
        id="d-1",
        action=action,
        phase=Phase.PLANNED,
        source=here,
        target=there,
        created_at=NOW,
        phase_since=NOW,
        reason=Reason.MOVING,
    )
    job = replace(job, spec=made).with_state(replace(job.state, revision=here, migration=migration))
    return changed(job, revisions={1: RevisionState(1, True, active=old, running=old)}, template_checked=True)


def step(job: Job, now: float = NOW) -> Job:
    return advance(job, None, AUTO, now, decision_text)


def seen(job: Job, there: int, *, now: float = NOW, **observed: Any) -> Job:
    """A step with so many replicas of the target ready."""
    here = job.observed.revisions[1]
    revisions = {1: here, 2: RevisionState(2, True, active=there, running=there)}
    return step(changed(job, revisions=revisions, **observed), now)


def wanted(job: Job) -> dict[int, int]:
    """Replicas of the Revisions that are to be there."""
    ensured = (command.ref for command in commands(job) if isinstance(command, EnsureRevision))
    return {ref.revision: ref.placement.replicas for ref in ensured}


def requests_to(job: Job) -> tuple[int, ...]:
    [directed] = (command.revisions for command in commands(job) if isinstance(command, DirectTraffic))
    return directed


def phase(job: Job) -> Phase | None:
    return None if job.state.migration is None else job.state.migration.phase


GOOD, SAME = window(1000, 1), window(1000, 2)


def sharing() -> Job:
    """One replica beside one."""
    job = seen(step(moving(new=1, old=1)), 1)
    assert phase(job) is Phase.SHARING
    return job


def holding() -> Job:
    job = seen(sharing(), 1, sides=sides(GOOD, SAME))
    assert phase(job) is Phase.HOLDING
    return job


def test_requests_go_over_step_by_step() -> None:
    job = step(moving(new=4, old=2))
    assert (phase(job), wanted(job), requests_to(job)) == (Phase.SURGING, {1: 2, 2: 2}, (1,)), "as many as are needed"
    assert phase(seen(job, 1)) is Phase.SURGING
    job = seen(job, 2)
    assert (phase(job), wanted(job), requests_to(job)) == (Phase.SHARING, {1: 2, 2: 2}, (1, 2))
    assert seen(job, 2) is not job and phase(seen(job, 2)) is Phase.SHARING, "nothing was answered yet"
    job = seen(job, 2, now=NOW + 60, sides=sides(GOOD, SAME))
    assert (phase(job), wanted(job), requests_to(job)) == (Phase.SHARING, {1: 2, 2: 4}, (1, 2))
    job = seen(job, 4, now=NOW + 75, sides=sides(GOOD, SAME))
    assert phase(job) is Phase.SHARING, "these are of the step before"
    later = window(1000, 1, at=NOW + 90)
    job = seen(job, 4, now=NOW + 120, sides=sides(later, SAME))
    assert (phase(job), wanted(job), requests_to(job)) == (Phase.HOLDING, {1: 2, 2: 4}, (2,))


def test_what_was_left_is_ended_once_all_requests_are_held() -> None:
    job = holding()
    assert phase(seen(job, 1, sides=sides(GOOD, None))) is Phase.HOLDING
    hour = HELD_WINDOWS * job.spec.profiling.window.total_seconds()
    job = seen(job, 1, now=NOW + hour, sides=sides(GOOD, None))
    assert job.state.migration is None and job.state.revision is not None and job.state.revision.revision == 2
    assert (wanted(job), requests_to(job), ended(job)) == ({2: 1}, (2,), {1})
    entry = job.state.history[-1]
    assert (entry.outcome, entry.reason, entry.lost_seconds) == (Outcome.VERIFIED, Reason.LATENCY_HELD, 0.0)


BAD = {
    "late": (window(300, 60), Reason.TOO_LATE),
    "answers 500": (window(300, 0, 300), Reason.ERRORS_ROSE),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("held", [False, True], ids=("shared", "held"))
def test_it_goes_back_at_any_step(bad: str, held: bool) -> None:
    new, reason = BAD[bad]
    job = holding() if held else sharing()
    job = seen(job, 1, sides=sides(new, None if held else SAME))
    assert job.state.migration is None and (wanted(job), requests_to(job), ended(job)) == ({1: 1}, (1,), {2})
    entry = job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.ROLLED_BACK, reason)
    assert entry.message and len(entry.message) <= 160
    assert job.state.avoid[-1].pool == "l40s", "not tried again for a day"


def test_ten_times_the_record_on_both_sides_undoes_nothing() -> None:
    flood = window(15_000, 9_000), window(15_000, 9_100)
    job = seen(sharing(), 1, sides=sides(*flood))
    assert (phase(job), requests_to(job)) == (Phase.SHARING, (1, 2))


def test_readings_of_the_sides_need_not_come_together() -> None:
    """As where a Prometheus scrapes their pods at other moments: a burst that both meet still undoes nothing."""
    new, old = sides(window(300, 60), None), sides(window(300, 60), None)
    apart = tuple(one for pair in zip(new, old, strict=True) for one in (pair[0], Sides(None, pair[1].new)))
    assert phase(seen(sharing(), 1, sides=apart)) is Phase.SHARING
    assert seen(sharing(), 1, sides=new).state.history[-1].reason is Reason.TOO_LATE


def test_requests_are_not_shared_for_long_with_a_side_of_which_nothing_is_read() -> None:
    def unread(minutes: float, old: ServedWindow = SAME) -> Job:
        blocks = (Sides(None, replaced(old, 15.0 * n)) for n in range(round(4 * minutes)))
        return seen(sharing(), 1, now=NOW + 60.0 * minutes + 1.0, sides=tuple(blocks))

    assert phase(unread(5.0)) is Phase.SHARING
    assert phase(unread(60.0, window(0))) is Phase.SHARING, "no request came"
    job = unread(5.5)
    entry = job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.ROLLED_BACK, Reason.METRICS_UNREACHABLE)
    assert (requests_to(job), ended(job)) == ((1,), {2})


def test_no_room_to_surge_touches_nothing() -> None:
    job = step(moving())
    blocked = RevisionState(2, True, active=1, blocked="Unschedulable: no chips")
    job = changed(job, revisions={**job.observed.revisions, 2: blocked})
    job = step(job, NOW + LONGEST_SURGE_SECONDS + 1)
    entry = job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.FAILED, Reason.START_DEADLINE_EXCEEDED)
    assert (requests_to(job), ended(job)) == ((1,), {2})


def test_a_target_that_stops_answering_gets_nothing_more() -> None:
    job = seen(holding(), 0)
    assert job.state.history[-1].reason is Reason.ERRORS_ROSE and requests_to(job) == (1,)


def test_an_edit_under_way_sends_all_requests_back() -> None:
    job = holding()
    job = seen(replace(job, workload_hash="edited", generation=job.generation + 1), 1)
    assert job.state.history[-1].outcome is Outcome.SUPERSEDED
    assert (requests_to(job), ended(job)) == ((1,), {2})


def test_too_few_requests_are_not_waited_for_for_ever() -> None:
    job = seen(sharing(), 1, now=NOW + LONGEST_JUDGED_SECONDS + 1)
    assert phase(job) is Phase.HOLDING
    hour = HELD_WINDOWS * job.spec.profiling.window.total_seconds()
    job = seen(job, 1, now=NOW + LONGEST_JUDGED_SECONDS + hour + 1)
    assert job.state.history[-1].reason is Reason.TOO_FEW_REQUESTS
    assert job.state.history[-1].outcome is Outcome.VERIFIED


def test_what_counts_no_requests_is_carried_out_at_once() -> None:
    job = step(moving(metrics=False))
    assert wanted(job) == {1: 2, 2: 4}
    job = seen(job, 4)
    assert job.state.history[-1].outcome is Outcome.CARRIED_OUT


def test_an_end_waits_until_no_request_goes_there() -> None:
    """The order in which commands are carried out."""
    job = seen(sharing(), 1, sides=sides(*(window(300, 60), SAME)))
    order = [type(command) for command in commands(job)]
    assert order.index(DirectTraffic) < order.index(EndRevision)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (1, 1, [1]),
        (2, 2, [1, 2]),
        (20, 20, [1, 6, 20]),
        (8, 2, [6, 8]),
        (2, 8, [1, 2]),
        (12, 2, [10, 12]),
    ],
    ids=("one", "two", "twenty", "more", "fewer", "many"),
)
def test_steps(new: int, old: int, expected: list[int]) -> None:
    steps = [first_share(new, old)]
    while (up := next_share(steps[-1], new, old)) is not None:
        steps.append(up)
    assert steps == expected
    assert all(up + old >= max(new, old) for up in steps), "no endpoint gets more than it is there for"


@given(st.integers(1, 40), st.integers(1, 40), st.floats(1.0, 4.0))
def test_first_replicas_keep_the_limit_at_the_peak_on_much_slower_chips(new: int, old: int, spare: float) -> None:
    """Where all of them do; with more room fewer get requests."""
    first = first_share(new, old, spare)
    assert 1 <= first <= new
    assert first == new or (first + old) * spare >= SLOWEST * new - 1e-6
    assert first >= first_share(new, old, spare + 0.5)


def batched(one: ServedWindow, seconds: float) -> ServedWindow:
    """Batches of four requests that took so long."""
    requests = one.counts.counters[RequestCounter.REQUESTS]
    counts = {
        RequestCounter.BATCHED: requests,
        RequestCounter.BATCHES: requests / 4.0,
        RequestCounter.TIMED_BATCHES: requests / 4.0,
        RequestCounter.BATCH_SECONDS: requests / 4.0 * seconds,
    }
    return replace(one, counts=replace(one.counts, counters={**one.counts.counters, **counts}))


def promising(spare: float = 1.2) -> Job:
    """Batches of four were to take 14 ms."""
    job = moving(new=1, old=1)
    migration = job.state.migration
    assert migration is not None
    promise = BatchPromise(0.010, 0.001, spare)
    return seen(step(job.with_state(replace(job.state, migration=replace(migration, batches=promise)))), 1)


def test_batches_that_break_the_limit_at_the_peak_send_it_back_before_any_is_late() -> None:
    job = seen(promising(), 1, sides=sides(batched(window(100), 0.021), window(100)))
    entry = job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.ROLLED_BACK, Reason.TOO_LATE)
    assert "1.5 times as long as promised" in entry.message
    assert job.state.avoid[-1].pool == "l40s"


def test_a_step_waits_while_batches_rather_break_the_limit_at_the_peak() -> None:
    job = seen(promising(spare=1.45), 1, sides=sides(batched(GOOD, 0.021), SAME))
    assert phase(job) is Phase.SHARING
    job = seen(job, 1, now=NOW + LONGEST_JUDGED_SECONDS + 1)
    assert job.state.history[-1].reason is Reason.TOO_LATE, "it is not taken for likely at last"


def test_batches_that_have_room_go_on() -> None:
    job = seen(promising(spare=2.0), 1, sides=sides(batched(GOOD, 0.021), SAME))
    assert phase(job) is Phase.HOLDING
    wrong = seen(promising(), 1, sides=sides(batched(GOOD, -0.021), SAME))
    assert phase(wrong) is Phase.HOLDING, "what no batch can take says nothing"


def of_means(requests: float, seconds: float, failed: float = 0) -> ServedWindow:
    """Of a page without a distribution, as Triton's is."""
    one = batched(window(requests, failed=failed), seconds)
    return replace(one, counts=replace(one.counts, times={}))


def test_where_no_distribution_is_there_a_move_is_judged_by_its_batches() -> None:
    new, old = of_means(200, 0.014), of_means(200, 0.012)
    job = seen(promising(), 1, sides=sides(new, old))
    assert phase(job) is Phase.HOLDING
    hour = HELD_WINDOWS * job.spec.profiling.window.total_seconds()
    entry = seen(job, 1, now=NOW + hour, sides=sides(new, None)).state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.VERIFIED, Reason.LATENCY_HELD)
    assert "1 times as long as promised" in entry.message and "has room for 1.2 times" in entry.message


@pytest.mark.parametrize(
    ("new", "reason"),
    [(of_means(200, 0.021), Reason.TOO_LATE), (of_means(300, 0.014, 300), Reason.ERRORS_ROSE)],
    ids=("slow batches", "failures"),
)
def test_where_no_distribution_is_there_it_goes_back_all_the_same(new: ServedWindow, reason: Reason) -> None:
    entry = seen(promising(), 1, sides=sides(new, of_means(200, 0.012))).state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.ROLLED_BACK, reason)


@pytest.mark.parametrize(
    ("new", "why"),
    [(of_means(200, 0.0165), "they may be too slow"), (of_means(20, 0.014), "too few requests")],
    ids=("close", "few"),
)
def test_where_no_distribution_is_there_doubt_is_waited_out(new: ServedWindow, why: str) -> None:
    assert phase(seen(promising(), 1, sides=sides(new, of_means(200, 0.012)))) is Phase.SHARING, why


def test_a_replica_that_starts_anew_while_held_is_no_reason_to_go_back() -> None:
    job = seen(holding(), 0, now=NOW + LONGEST_SURGE_SECONDS + 60.0)
    assert job.state.migration is None and job.state.history[-1].reason == Reason.ERRORS_ROSE, "none is left"
    two = seen(step(moving(new=2, old=2)), 1)
    two = seen(two, 1, sides=sides(GOOD, SAME))
    two = seen(two, 2, sides=sides(GOOD, SAME))
    assert phase(two) is Phase.HOLDING
    assert phase(seen(two, 1, now=NOW + LONGEST_SURGE_SECONDS + 60.0, sides=())) is Phase.HOLDING


def scaled(job: Job, least: int) -> Job:
    """As an autoscaler writes it through the scale subresource, which is no edit of the program."""
    workload = job.spec.workload.server
    assert workload is not None
    server_now = workload.model_copy(update={"scale": workload.scale.model_copy(update={"min": least})})
    made = job.spec.model_copy(update={"workload": job.spec.workload.model_copy(update={"server": server_now})})
    return replace(job, spec=made, generation=job.generation + 1)


def test_ten_times_the_demand_while_requests_are_shared_gets_its_replicas() -> None:
    """Of what is left, since the new side is still to be judged; and at the end of the new one, too."""
    job = seen(scaled(sharing(), 10), 1)
    assert (phase(job), requests_to(job), wanted(job)) == (Phase.SHARING, (1, 2), {1: 10, 2: 1})
    fewer = seen(scaled(job, 1), 1)
    assert wanted(fewer) == {1: 10, 2: 1}, "none is given up while a move goes on"
    migration = fewer.state.migration
    assert migration is not None and migration.source == fewer.state.revision
    job = seen(fewer, 1, now=NOW + 60, sides=sides(GOOD, SAME))
    while phase(job) is Phase.SHARING and (migration := job.state.migration) is not None:
        since = migration.phase_since + 15.0
        good, same = window(1000, 1, at=since), window(1000, 2, at=since)
        job = seen(job, migration.up, now=since + 45.0, sides=sides(good, same))
    assert (phase(job), requests_to(job), wanted(job)) == (Phase.HOLDING, (2,), {1: 10, 2: 10})


def test_an_edit_comes_up_with_as_many_as_are_wanted_by_then() -> None:
    job = seen(scaled(step(moving(new=2, old=2, action=Action.UPDATE)), 5), 2)
    assert (phase(job), wanted(job)) == (Phase.SURGING, {1: 5, 2: 5})
    there = seen(job, 5)
    assert there.state.migration is None and wanted(there) == {2: 5}


def test_an_edit_that_has_not_started_keeps_no_replicas_from_what_answers() -> None:
    job = seen(step(moving(new=2, old=2, action=Action.UPDATE)), 0, now=NOW + LONGEST_SURGE_SECONDS + 1.0)
    assert job.state.migration is not None and job.state.migration.given_up
    for least in (5, 1):
        job = seen(scaled(job, least), 0, now=NOW + LONGEST_SURGE_SECONDS + 9.0)
        assert wanted(job) == {1: least}


def elsewhere(job: Job, here: int, there: int | None = None) -> Job:
    """As somebody else scales it: so many pods its Deployments ask for, which all run."""
    workload = job.spec.workload.server
    assert workload is not None
    scaled_by = workload.model_copy(update={"autoscaler": Autoscaler.EXTERNAL})
    made = job.spec.model_copy(update={"workload": job.spec.workload.model_copy(update={"server": scaled_by})})
    counts = {1: here} if there is None else {1: here, 2: there}
    revisions = {n: RevisionState(n, True, active=pods, running=pods, pods=pods) for n, pods in counts.items()}
    return changed(replace(job, spec=made), revisions=revisions)


def test_what_somebody_else_scales_is_as_large_as_its_deployment() -> None:
    alone = changed(moving(new=2, old=2), migration=None)
    job = step(elsewhere(alone, 7))
    assert wanted(job) == {1: 7}
    assert job.state.revision is not None and job.state.revision.placement.chips == 14
    assert wanted(step(elsewhere(job, 0))) == {1: 7}, "to none by spec.suspend alone"


def test_what_somebody_else_scales_moves_with_all_replicas_at_once() -> None:
    job = step(elsewhere(moving(new=4, old=4), 4))
    assert (phase(job), wanted(job)) == (Phase.SURGING, {1: 4, 2: 4})
    for here, there in ((3, 5), (2, 4)):
        job = step(elsewhere(job, here, there))
        assert (phase(job), wanted(job)) == (Phase.SURGING, {1: here, 2: there}), "followed, up and down"
    job = step(elsewhere(job, 2, 4))
    assert phase(job) is Phase.SHARING
    job = step(changed(elsewhere(job, 2, 4), sides=sides(GOOD, SAME)))
    assert (phase(job), requests_to(job)) == (Phase.HOLDING, (2,))
