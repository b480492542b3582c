"""No state without an exit: what never answers ends the migration in time, or is told with what to do about it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.action import Action
from rightpool.api.conditions import Condition, Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.allocate.breaker import outcomes_of
from rightpool.planning.jobs.lingering import UNENDED_SECONDS
from rightpool.planning.jobs.revision_state import ChildRefusal
from rightpool.planning.moves.arrival import LONGEST_WAIT_SECONDS
from rightpool.planning.moves.stop_then_start import FINISHING_SECONDS
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.experience import ran_last
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.conditions.migrating import migrating
from rightpool.reporting.conditions.placed import placed
from rightpool.reporting.decision_texts import decision_text
from rightpool.reporting.events import JobEvents
from tests.unit.planning.jobs import changed
from tests.unit.planning.test_transitions_properties import EVENTS, happen
from tests.unit.planning.world import A10G, A100, World, candidate, decide, moved, on_a100

HOUR = 3600.0


def wait(world: World, seconds: float, step: float = 600.0) -> None:
    """Time passes in which nothing is decided."""
    until = world.now + seconds
    while world.now < until:
        world.live(step)
        world.cycle()


def placed_says(world: World) -> tuple[Reason | str, str]:
    """What Placed says."""
    statement = placed(world.observed(), context(world))
    return statement.reason, statement.message


def context(world: World) -> Context:
    return Context(None, None, True, world.now)


@pytest.mark.parametrize("hangs", [True, False])
def test_a_program_that_shows_no_step_where_it_was_moved_to_goes_back_after_an_hour(hangs: bool) -> None:
    """What hangs can't save. What only is not seen can, and does before it goes."""
    world = on_a100(profiling={"window": "5m"})
    world.hung_pools = {"a10g"}
    moved(world).reach(Phase.WARMING_UP)
    world.answers = not hangs
    wait(world, HOUR - 600.0)
    assert world.job.state.migration is not None and not world.job.state.migration.rolling_back, "it may compile"
    before = world.now
    wait(world, 2 * HOUR)
    assert world.job.state.migration is None
    entry, revision = world.job.state.history[-1], world.job.state.revision
    assert entry.outcome is Outcome.ROLLED_BACK and "no step within 60 min after the move" in entry.message
    assert revision is not None and revision.placement == A100
    assert (world.saves is not None and world.saves > before) is not hangs
    assert ("no new checkpoint" in entry.message) is hangs, entry.message
    assert "done again" not in entry.message, "it did nothing"


FOR_GOOD = [
    Reason.MAX_COST_PER_HOUR_EXCEEDED,
    Reason.MIN_SCALING_EFFICIENCY_MISSED,
    Reason.MIN_FLOPS_UTILIZATION_MISSED,
    Reason.PLACEMENT_DISALLOWED,
]


@pytest.mark.parametrize("no_step", [True, False])
@pytest.mark.parametrize("reason", FOR_GOOD)
def test_a_move_that_slowness_does_not_undo_is_not_verified_where_the_program_hangs(
    reason: Reason, no_step: bool
) -> None:
    """It goes back, and its placement is not tried again for a day: the next one may hold the target, too. Where it
    came from it may not be any more, it stays."""
    world = on_a100(profiling={"window": "5m"})
    world.rates["a10g"] = 0.0
    world.hung_pools = {"a10g"} if no_step else set()
    asked = decide(Action.MOVE, A10G, 900.0, candidate(A100, 1000.0, 0.02))
    asked.decision = replace(asked.decision, reason=reason)
    world.cycle(asked)
    wait(world, 6 * HOUR)
    entry, revision = world.job.state.history[-1], world.job.state.revision
    assert world.job.state.migration is None and revision is not None and entry.hung
    outcome = outcomes_of([world.job], {}, world.now)["a10g"][-1]
    assert outcome.undone, "it speaks against the pool"
    if reason is Reason.PLACEMENT_DISALLOWED:
        assert (entry.outcome, entry.reason, revision.placement) == (Outcome.FAILED, reason, A10G)
        assert "it stays, because where it was is not allowed any more" in entry.message
    else:
        assert (entry.outcome, revision.placement) == (Outcome.ROLLED_BACK, A100)
        assert world.job.state.avoid[-1].pool == "a10g"


def test_a_job_that_hangs_and_finds_no_room_to_go_back_is_not_started_there_again() -> None:
    world = on_a100(profiling={"window": "5m"})
    world.hung_pools, world.stuck_pools = {"a10g"}, {"a100"}
    moved(world)
    wait(world, 4 * HOUR)
    entry = world.job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.FAILED, Reason.START_DEADLINE_EXCEEDED)
    assert ran_last(world.job) is None and world.job.state.avoid[-1].pool == "a10g"


def stays_unproven(world: World) -> None:
    """However long it is looked at, nothing is proven by it, and it stays."""
    wait(world, 4 * HOUR)
    entry, revision = world.job.state.history[-1], world.job.state.revision
    assert (entry.outcome, entry.reason) == (Outcome.FAILED, Reason.TELEMETRY_UNAVAILABLE)
    assert revision is not None and revision.placement == A10G


def test_what_works_there_and_is_counted_otherwise_is_not_taken_to_hang() -> None:
    """Its steps are not read, and samples of it are: it works, and only can't be compared."""
    world = on_a100(profiling={"window": "5m"})
    world.units = {"a100": WorkUnit.STEPS}
    moved(world).reach(Phase.WARMING_UP)
    assert world.job.state.migration is not None and world.job.state.migration.unit is WorkUnit.STEPS
    stays_unproven(world)


def test_what_is_seen_to_compile_for_longer_than_an_hour_does_not_hang() -> None:
    world = on_a100(profiling={"window": "5m"})
    world.hung_pools, world.compiling = {"a10g"}, 0.9
    moved(world).reach(Phase.WARMING_UP)
    stays_unproven(world)


def test_what_nobody_reads_there_goes_back_for_nothing() -> None:
    world = on_a100(profiling={"window": "5m"})
    world.rates = {"a100": 1000.0}
    moved(world).reach(Phase.WARMING_UP)
    stays_unproven(world)


def test_a_way_back_whose_pods_never_run_and_do_not_say_why_is_over_after_a_day() -> None:
    world = on_a100()
    world.stuck_pools, world.silent_pools = {"a10g"}, {"a100"}
    moved(world).reach(Phase.STARTING, back=True)
    wait(world, LONGEST_WAIT_SECONDS - 2 * HOUR)
    assert world.job.state.migration is not None, "it may only be slow"
    wait(world, 4 * HOUR)
    assert world.job.state.migration is None
    entry = world.job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.FAILED, Reason.START_DEADLINE_EXCEEDED)
    assert "on the way back: not running after 10 min: no reason known" in entry.message
    reason, message = placed_says(world)
    assert reason is Reason.START_DEADLINE_EXCEEDED
    assert "0 of 1 pods run since" in message and "kubectl describe" in message


def test_a_move_that_is_undone_says_what_is_known_of_why_it_did_not_start() -> None:
    """Placed says it while the job waits, and the ledger afterwards."""
    world = on_a100()
    world.silent_pools = {"a10g"}
    moved(world).reach(Phase.STARTING)
    job = world.observed()
    assert job.state.migration is not None
    number = job.state.migration.target.revision
    late = world.now + world.policy.start_deadline.total_seconds() + 1.0
    waiting = job.observed.revisions[number]
    quota = "services is forbidden: exceeded quota: few"
    refusal = ChildRefusal(number, job.generation, Reason.INVALID_TEMPLATE, quota, world.now)
    unready = "containers with unready status: [trainer]"
    fault = "UnexpectedAdmissionError: no healthy devices"
    for known, words in (
        (changed(job, refusal=refusal), quota),
        (changed(job, refusal=replace(refusal, revision=number - 1)), "no reason known"),
        (changed(job, revisions={number: replace(waiting, unready=unready)}), unready),
        (changed(job, revisions={number: replace(waiting, unready=unready, pod_fault=fault)}), fault),
    ):
        migration = advance(known, None, world.policy, late, decision_text).state.migration
        assert migration is not None and migration.rolling_back
        assert migration.failure_message == f"not running after 10 min: {words}"


def test_an_update_whose_pods_never_run_and_do_not_say_why_is_over_after_a_day() -> None:
    world = on_a100()
    world.silent_pools = {"a100"}
    world.job = replace(world.job, workload_hash="h2")
    world.cycle(decide(Action.UPDATE, A100, 1000.0))
    world.reach(Phase.STARTING)
    wait(world, LONGEST_WAIT_SECONDS + HOUR)
    assert world.job.state.migration is None
    assert world.job.state.history[-1].reason is Reason.START_DEADLINE_EXCEEDED
    assert placed_says(world)[0] is Reason.START_DEADLINE_EXCEEDED


def test_a_way_back_that_its_queue_never_admits_is_over_after_a_day() -> None:
    world = on_a100(queue_name="research")
    world.admits = False
    moved(world).reach(Phase.STARTING, back=True)
    wait(world, LONGEST_WAIT_SECONDS + HOUR)
    assert world.job.state.migration is None
    assert "queue research has not admitted it" in world.job.state.history[-1].message
    assert placed_says(world)[0] is Reason.WAITING_FOR_QUOTA
    world.admits = True
    wait(world, 60.0, 5.0)
    assert placed_says(world)[0] is Reason.RUNNING, "it has kept its place in the queue"


def test_a_job_that_its_queue_stops_before_the_verdict_is_not_waited_for_longer_than_a_day() -> None:
    world = on_a100(queue_name="research")
    moved(world).reach(Phase.WARMING_UP)
    world.admits = False
    wait(world, LONGEST_WAIT_SECONDS - HOUR)
    assert world.job.state.migration is not None
    wait(world, 2 * HOUR)
    assert world.job.state.migration is None
    entry = world.job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.FAILED, Reason.WAITING_FOR_QUOTA)
    assert world.job.state.revision is not None and world.job.state.revision.placement == A10G


def test_pods_that_do_not_end_are_told_with_the_remedy() -> None:
    """The node is lost: what may still write to the checkpoint has no second one beside it."""
    world = on_a100()
    world.nodes_lost = True
    moved(world).reach(Phase.DRAINING)
    wait(world, UNENDED_SECONDS, 5.0)
    assert placed_says(world)[0] is Reason.STARTING
    wait(world, 60.0, 5.0)
    job = world.observed()
    reason, message = placed_says(world)
    assert reason is Reason.PODS_NOT_ENDING
    assert "kubectl delete node node-1" in message
    assert "kubectl delete pod job-r1-0 --force" in message
    moving = migrating(job, context(world))
    assert moving is not None and (moving.status, moving.reason) == ("True", Reason.PODS_NOT_ENDING)
    assert message in moving.message
    before = (Condition("Placed", "True", Reason.RUNNING.value),)
    after = (Condition("Placed", "False", reason, message),)
    events = list(JobEvents().events({}, job, job, before, after))
    assert [(event.reason, event.warning) for event in events] == [("PodsNotEnding", True)]
    wait(world, 10 * HOUR)
    assert world.created == [1], "one writer"
    world.nodes_lost = False
    world.settle()
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED


def test_a_child_that_is_not_deleted_is_told() -> None:
    world = moved(on_a100())
    world.reach(Phase.DRAINING)
    world.children[1].deleting, world.children[1].deleted_at = False, None
    world.now += UNENDED_SECONDS + 1.0
    statement = migrating(world.observed(), context(world))
    assert statement is not None and statement.reason is Reason.PODS_NOT_ENDING
    assert "finalizers" in statement.message


@pytest.mark.parametrize("action", [Action.MOVE, Action.UPDATE])
def test_a_child_of_which_nobody_says_how_it_has_ended_is_not_waited_for_for_ever(action: Action) -> None:
    world = on_a100()
    world.answers = False
    if action is Action.UPDATE:
        world.job = replace(world.job, workload_hash="h2")
        world.cycle(decide(Action.UPDATE, A100, 1000.0))
    else:
        moved(world)
    world.reach(Phase.CHECKPOINTING)
    world.children[1].finishing = True
    wait(world, FINISHING_SECONDS - 30.0, 5.0)
    assert world.job.state.migration is not None and world.job.state.migration.phase is Phase.CHECKPOINTING
    wait(world, 120.0, 5.0)
    if action is Action.UPDATE:
        assert len(world.created) == 2, "who demands it does not wait"
        return
    entry = world.job.state.history[-1]
    assert (entry.outcome, entry.reason, world.created) == (Outcome.HELD, Reason.FINISHING, [1])
    reason, message = placed_says(world)
    assert reason is Reason.FINISHING and "Job controller" in message


POOLS = st.sets(st.sampled_from(["a100", "a10g"]))
SILENCE = st.fixed_dictionaries(
    {"silent_pools": POOLS, "stuck_pools": POOLS, "nodes_lost": st.booleans(), "admits": st.booleans()}
)


@given(
    st.sampled_from([Action.MOVE, Action.UPDATE, Action.START]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 100.0, 900.0]),
    SILENCE,
    st.floats(0.0, 2 * HOUR),
    st.sampled_from([frozenset(), frozenset({"finishing"}), frozenset({"silent"}), frozenset({"suspended"})]),
    st.lists(EVENTS, max_size=3),
)
def test_a_world_that_never_answers_leaves_no_migration_without_a_word(
    action: Action,
    queued: bool,
    answers: bool,
    rate: float | None,
    silence: dict[str, object],
    seconds: float,
    halted: frozenset[str],
    events: list[tuple[str, object]],
) -> None:
    """From any state: nothing changes any more but the time. Within a week the migration is over, or it is said what
    keeps it and who can do something about it."""
    world = on_a100(**({"queue_name": "research"} if queued else {}))
    world.answers = answers
    world.rates = {"a100": 1000.0} | ({} if rate is None else {"a10g": rate})
    for name, value in silence.items():
        setattr(world, name, value)
    if action is Action.UPDATE:
        world.job = replace(world.job, workload_hash="h2")
    world.cycle(decide(action, A100 if action is Action.UPDATE else A10G, 900.0, candidate(A100, 1000.0, 0.02)))
    wait(world, seconds, max(seconds / 200.0, 5.0))
    for event in events:
        happen(world, event)
    for child in world.children.values():
        child.finishing = child.finishing or "finishing" in halted
        child.suspended = child.suspended or "suspended" in halted
        if "silent" in halted:
            child.running = 0
    frozen = world.observed().observed._replace(profile=None, variation=None)
    for _ in range(7 * 48):
        world.now += HOUR / 2
        job = replace(world.job, observed=frozen)
        world.persist(advance(job, None, world.policy, world.now, decision_text))
        if world.job.state.migration is None:
            return
    statement = migrating(replace(world.job, observed=frozen), context(world))
    assert statement is not None
    assert statement.reason is Reason.PODS_NOT_ENDING or "The job is stopped" in statement.message
