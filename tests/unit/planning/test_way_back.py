"""The way back of a move: what it left is held until the verdict, and no job is left without a place."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.variation import SlowStart, Variation
from rightpool.planning.allocate.way_back import price_of_return
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.offers.evidence import SourceNotHeld
from tests.unit.planning.jobs import NOW, changed, decided_text, fleet, fresh, plan, running, spec
from tests.unit.planning.test_plan import FREE, reasons
from tests.unit.planning.test_restart import judged, stuck
from tests.unit.planning.test_verification import quiet
from tests.unit.planning.world import A10G as SLOWER
from tests.unit.planning.world import A100 as FASTER
from tests.unit.planning.world import World, candidate, decide
from tests.unit.prediction.fixtures import A10G, A100_CHIP, pool

EIGHT = Placement("a100", 8, 1)
FIXED = {"elasticity": {"minChips": 8, "maxChips": 8, "batch": "PerChip"}}
ONE_NODE = pool("a100", A100_CHIP, 4.0, total=8, free=8)


def proving(**fields: object) -> Job:
    """A job that has left the only A100 node and is being verified elsewhere."""
    job = running(EIGHT, name="mover", made=spec(8, **FIXED))
    source = job.state.revision
    assert source is not None
    target = replace(source, revision=2, placement=Placement("a10g", 8, 2))
    migration = Migration("d-1", Action.MOVE, Phase.VERIFYING, source, target, NOW - 600, NOW - 60, Reason.MOVING)
    pods = {2: RevisionState(2, True, active=2, running=2)}
    made = changed(job, revision=target, migration=replace(migration, **fields), revisions=pods)
    return replace(made, created_at=NOW - 1e6)


def newcomer() -> Job:
    return fresh("newcomer", spec(8, **FIXED, placement={"pools": {"allow": ["a100"]}}), created_at=NOW - 100)


@pytest.mark.parametrize("phase", [Phase.DRAINING, Phase.STARTING, Phase.WARMING_UP, Phase.VERIFYING])
def test_what_a_move_has_left_is_not_given_to_others_until_the_verdict(phase: Phase) -> None:
    job = proving(phase=phase)
    if phase is Phase.DRAINING:
        job = changed(job, revision=job.state.migration.source, revisions={})  # type: ignore[union-attr]
    made = plan(fleet([job, newcomer()], {"a100": ONE_NODE, "a10g": A10G}, FREE))
    assert reasons(made)["newcomer"] is Reason.WAITING_FOR_CAPACITY
    assert made.assessments[job.key].way_back is True


def test_a_move_without_return_gives_up_what_it_left() -> None:
    job = proving(without_return=Reason.SOURCE_NOT_HELD)
    made = plan(fleet([job, newcomer()], {"a100": ONE_NODE, "a10g": A10G}, FREE))
    assert made.assessments[newcomer().key].decision.action is Action.START


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.WARMING_UP, Phase.VERIFYING])
def test_a_place_that_its_user_does_not_allow_is_kept_until_the_job_runs_elsewhere(phase: Phase) -> None:
    """No verdict sends it back there, and one may take half an hour where nothing is measured."""
    job = proving(phase=phase, reason=Reason.PLACEMENT_DISALLOWED)
    made = plan(fleet([job, newcomer()], {"a100": ONE_NODE, "a10g": A10G}, FREE))
    assert (made.assessments[newcomer().key].decision.action is Action.START) is (phase is not Phase.STARTING)


def test_nobody_is_held_off_for_a_way_back_that_is_not_worth_it() -> None:
    """A job with an hour to go leaves chips that others wait for: holding them costs more than undoing could save."""
    made_of = spec(8, **FIXED, progress={"totalSamples": 90_000_000})
    job = running(EIGHT, 1000.0, "mover", made_of, ratios={"exposed_communication": 0.02})
    cheap = replace(A10G, price=replace(A10G.price, on_demand=0.2))
    full = replace(ONE_NODE, free=0)
    made = plan(fleet([job, newcomer()], {"a100": full, "a10g": cheap}, FREE)).assessments[job.key]
    assert made.decision.action is Action.MOVE
    assert isinstance(made.decision.evidence, SourceNotHeld) and made.decision.evidence.waiting == 1
    assert made.decision.evidence.cost > made.decision.evidence.worth
    assert "without a way back, because another job waits for the chips that it leaves" in decided_text(made)
    alone = plan(fleet([job], {"a100": full, "a10g": cheap}, FREE)).assessments[job.key]
    assert alone.decision.action is Action.MOVE and alone.decision.evidence is None


def test_chips_are_held_until_after_a_slow_start() -> None:
    """No verdict comes before. The work that is missing meanwhile is another matter: it is no time of the clock."""
    job = running(EIGHT, 1000.0, "mover", spec(8, **FIXED))
    made = plan(fleet([job], {"a100": ONE_NODE, "a10g": A10G}, FREE)).assessments[job.key]
    assert made.evaluated is not None
    known = quiet(1000.0)
    target = candidate(Placement("a10g", 8, 2), 900.0)

    def seconds(variation: Variation) -> float:
        assert made.evaluated is not None
        return price_of_return(changed(job, variation=variation), made.evaluated, target)[2]

    window = job.spec.profiling.window.total_seconds()
    slow = replace(known, slow_start=SlowStart(6 * window, 3.0 * window, 0))
    assert seconds(slow) - seconds(known) == pytest.approx(6 * window)


# --- the verdict -----------------------------------------------------------------------------------------------------


def worse(**overrides: object) -> World:
    """A world in which a move has left the fast pool, and is about to be found worse."""
    world = World.fresh(**overrides)
    world.rates = {"a100": 1000.0, "a10g": 150.0}
    world.placed(FASTER, 1000.0)
    world.cycle(decide(Action.MOVE, SLOWER, 900.0, candidate(FASTER, 1000.0, 0.02)))
    return world


def seen(world: World, room: bool) -> object:
    made = decide(Action.KEEP, SLOWER, 900.0)
    made.decision = replace(made.decision, candidate=None)
    made.way_back = room
    return made


def settle(world: World, room: bool, cycles: int = 40) -> None:
    for _ in range(cycles):
        world.live()
        world.cycle(seen(world, room))
        world.check()


def test_a_job_that_is_worse_off_stays_where_there_is_no_room_to_go_back_to() -> None:
    world = worse()
    settle(world, room=False)
    entry, ref = world.job.state.history[-1], world.job.state.revision
    assert (entry.outcome, entry.reason) == (Outcome.FAILED, Reason.NO_ROOM_TO_RETURN)
    assert ref is not None and ref.placement == SLOWER and world.children[ref.revision].running == 2
    assert "there is no room for 8 chips of a100" in entry.message


def test_a_job_that_is_worse_off_and_nearly_done_stays() -> None:
    world = worse(progress={"totalSamples": 60_000})
    settle(world, room=True)
    entry = world.job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.FAILED, Reason.RETURN_DOES_NOT_PAY)
    assert world.created == [1, 2]


def test_a_move_without_return_stays_and_says_why() -> None:
    world = worse()
    migration = world.job.state.migration
    assert migration is not None
    world.job = changed(world.job, migration=replace(migration, without_return=Reason.SOURCE_NOT_HELD))
    settle(world, room=True)
    assert world.job.state.history[-1].reason == Reason.SOURCE_NOT_HELD
    assert world.created == [1, 2]


def test_a_target_that_does_not_start_is_left_for_another_one_where_there_is_no_way_back() -> None:
    world = worse()
    world.stuck_pools = {"a10g"}
    settle(world, room=False, cycles=200)
    assert world.job.state.migration is None
    assert world.job.state.history[-1].reason == Reason.START_DEADLINE_EXCEEDED
    assert "there is no room on a100, where it came from" in world.job.state.history[-1].message
    assert world.created == [1, 2], "it is a job to be started, where there is room"


def test_a_way_back_that_does_not_start_goes_to_the_target_it_left() -> None:
    """Its place was lost meanwhile: slow is better than nowhere."""
    world = stuck()
    world.placed(FASTER, 1000.0)
    world.rates["a10g"] = 150.0
    world.cycle(decide(Action.MOVE, SLOWER, 900.0, candidate(FASTER, 1000.0, 0.02)))
    for _ in range(30):
        world.live()
        world.cycle()
        if world.job.state.migration is not None and world.job.state.migration.rolling_back:
            break
    world.stuck_pools = {"a100", "tpu"}
    for _ in range(100):
        world.live(30.0)
        world.cycle(judged(world, {"a100": ONE_NODE, "a10g": A10G}))
        world.check()
    ref = world.job.state.revision
    assert world.job.state.migration is None and ref is not None
    assert ref.placement.pool == "a10g" and ref.since is not None


def test_a_job_that_has_lost_its_node_goes_where_there_is_room() -> None:
    world = stuck()
    world.placed(FASTER, 1000.0)
    ref = world.job.state.revision
    assert ref is not None and ref.since is not None
    world.stuck_pools = {"a100"}
    world.children[ref.revision].stuck = True
    for _ in range(60):
        world.live(30.0)
        world.cycle(judged(world, {"a100": ONE_NODE, "a10g": A10G}))
        world.check()
    ref = world.job.state.revision
    assert ref is not None and ref.placement.pool == "a10g" and ref.since is not None
    assert not world.job.state.avoid, "it ran there: what was lost may come back"


# --- no state without an exit ----------------------------------------------------------------------------------------

POOLS = {"a100": ONE_NODE, "a10g": A10G}
EVENTS = st.one_of(
    st.tuples(st.just("pass"), st.sampled_from([5.0, 30.0, 700.0])),
    st.tuples(st.just("plan"), st.sampled_from([5.0, 700.0])),
    st.tuples(st.just("move"), st.sampled_from([FASTER, SLOWER])),
    st.tuples(st.just("full"), st.sampled_from([(), ("a100",), ("a10g",), ("a100", "a10g")])),
    st.tuples(st.just("rate"), st.sampled_from([100.0, 900.0, 2000.0])),
    st.tuples(st.just("room"), st.booleans()),
    st.tuples(st.just("answers"), st.booleans()),
    st.tuples(st.just("fails"), st.booleans()),
    st.tuples(st.just("fail"), st.integers(1, 4)),
    st.tuples(st.just("edit"), st.integers(1, 3)),
)


def fill(world: World, pools: tuple[str, ...]) -> None:
    """Pods on these pools find no node from now on; those on others do."""
    world.stuck_pools = set(pools)
    for number, child in world.children.items():
        refs = [world.job.state.revision, *([] if world.job.state.migration is None else _refs(world))]
        at = next((ref.placement.pool for ref in refs if ref is not None and ref.revision == number), None)
        child.stuck = at in pools


def _refs(world: World) -> list[object]:
    migration = world.job.state.migration
    assert migration is not None
    return [migration.moving, migration.target]


@given(st.lists(EVENTS, max_size=14), st.sampled_from(["a100", "a10g"]))
def test_once_there_is_room_somewhere_a_job_runs_again(events: list[tuple[str, object]], left: str) -> None:
    world = stuck()
    world.placed(FASTER, 1000.0)
    for kind, value in events:
        if kind == "pass":
            world.live(value)  # type: ignore[arg-type]
            world.cycle()
        elif kind == "plan":
            world.live(value)  # type: ignore[arg-type]
            world.cycle(judged(world, POOLS))
        elif kind == "move":
            world.cycle(decide(Action.MOVE, value, 900.0, candidate(FASTER, 1000.0, 0.02)))  # type: ignore[arg-type]
        elif kind == "full":
            fill(world, value)  # type: ignore[arg-type]
        elif kind == "rate":
            world.rates["a10g"] = value  # type: ignore[assignment]
        elif kind == "room":
            world.cycle(seen(world, bool(value)))
        elif kind == "answers":
            world.answers = bool(value)
        elif kind == "fails":
            world.fails = bool(value)
        elif kind == "fail" and value in world.children:
            world.children[value].failed = True  # type: ignore[index]
        elif kind == "edit":
            world.job = replace(world.job, workload_hash=f"h{value}")
        world.check()
    # One pool has room for good, the other has not.
    fill(world, tuple({"a100", "a10g"} - {left}))
    end = world.now + 2 * 86_400.0
    while world.now < end and not at_rest(world):
        fill(world, tuple(world.stuck_pools))
        world.live(900.0)
        world.cycle(judged(world, POOLS))
        world.check()
    assert at_rest(world), world.job.state


def at_rest(world: World) -> bool:
    """Whether it has ended, or all its pods run and nothing is under way."""
    state = world.job.state
    if state.finished is not None:
        return True
    if state.revision is None or state.migration is not None:
        return False
    child = world.children.get(state.revision.revision)
    return child is not None and child.running >= state.revision.placement.replicas
