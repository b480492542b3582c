"""The state machine under any order of events: kills, lost pods, failing programs, edits, suspension."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rightpool.api.action import Action
from rightpool.planning.moves.news import at_rest
from rightpool.planning.moves.transitions import advance
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.world import A10G, A100, World, candidate, decide, spec

EVENTS = st.one_of(
    st.tuples(st.just("cycle"), st.none() | st.integers(0, 2)),
    st.tuples(st.just("live"), st.floats(0.1, 700.0)),
    st.tuples(st.just("decide"), st.sampled_from([A100, A10G])),
    st.tuples(st.just("fail"), st.integers(1, 6)),
    st.tuples(st.just("succeed"), st.integers(1, 6)),
    st.tuples(st.just("delete"), st.integers(1, 6)),
    st.tuples(st.just("lose pods"), st.integers(1, 6)),
    st.tuples(st.just("edit"), st.integers(1, 3)),
    st.tuples(st.just("suspend"), st.booleans()),
    st.tuples(st.just("answers"), st.booleans()),
    st.tuples(st.just("fails"), st.booleans()),
    st.tuples(st.just("rate"), st.sampled_from([100.0, 900.0, 2000.0])),
    st.tuples(st.just("stuck"), st.booleans()),
    st.tuples(st.just("gone"), st.sampled_from([frozenset(), frozenset({"a100"}), frozenset({"a10g"})])),
)


def happen(world: World, event: tuple[str, object]) -> None:
    """One event of the outside world, or one cycle of the operator."""
    kind, value = event
    number = value if isinstance(value, int) else 0
    if kind == "cycle":
        world.cycle(killed_before=value)  # type: ignore[arg-type]
    elif kind == "live":
        world.live(value)  # type: ignore[arg-type]
    elif kind == "decide":
        current = candidate(A100, 1000.0, 0.02)
        action = Action.START if world.job.state.revision is None else Action.MOVE
        world.cycle(decide(action, value, 900.0, current))  # type: ignore[arg-type]
    elif kind in ("fail", "succeed") and number in world.children:
        child = world.children[number]
        if not child.deleting and not child.suspended:
            child.failed, child.succeeded = kind == "fail", kind == "succeed"
    elif kind == "delete" and number in world.children:
        world.children[number].deleting = True
    elif kind == "lose pods" and number in world.children:
        world.children[number].running = 0
    elif kind == "edit":
        world.job = replace(world.job, workload_hash=f"h{value}")
    elif kind == "suspend":
        world.job = replace(world.job, spec=spec(suspend=bool(value)))
    elif kind == "answers":
        world.answers = bool(value)
    elif kind == "fails":
        world.fails = bool(value)
    elif kind == "rate":
        world.rates["a10g"] = value  # type: ignore[assignment]
    elif kind == "stuck":
        world.stuck_pools = {"a10g"} if value else set()
    elif kind == "gone":
        world.gone_pools = set(value)  # type: ignore[call-overload]


def _rests_whenever_it_is_asked(world: World) -> None:
    job = world.observed()
    if at_rest(job) and advance(job, None, world.policy, world.now, decision_text) is job:
        for later in (1.0, 3_000.0, 1e6):
            assert advance(job, None, world.policy, world.now + later, decision_text) is job


def _wanted(world: World) -> Any:
    """What a planner decides that wants nothing by itself."""
    revision = world.job.state.revision
    if revision is None:
        return decide(Action.START, A100, 1000.0)
    if revision.workload_hash != world.job.workload_hash:
        return decide(Action.UPDATE, revision.placement, 1000.0)
    return None


@settings(max_examples=120, deadline=None)
@given(st.lists(EVENTS, max_size=60))
def test_never_two_revisions_and_always_an_end(events: list[tuple[str, object]]) -> None:
    world = World.fresh()
    world.rates = {"a100": 1000.0, "a10g": 900.0}
    spent = 0.0
    for event in events:
        happen(world, event)
        world.check()
        _rests_whenever_it_is_asked(world)
        assert world.job.state.account.spent >= spent
        spent = world.job.state.account.spent
    # Left alone with healthy pools, the job comes to rest: finished, or one running Revision and no migration.
    world.job = replace(world.job, spec=spec())
    world.answers, world.fails, world.stuck_pools, world.gone_pools = True, False, set(), set()
    for child in world.children.values():
        child.stuck = False
    rested = 0  # cycles
    for _ in range(600):
        world.live()
        world.cycle(_wanted(world))
        world.check()
        rested = rested + 1 if at_rest(world.observed()) else 0
        if rested > 50:
            break
    for seconds in (600.0, 3_000.0):  # what rests is left alone for longer, in fewer steps
        world.live(seconds)
        world.cycle(_wanted(world))
        world.check()
    assert world.job.state.migration is None
    if world.job.state.finished is None:
        assert world.job.state.revision is not None
        assert list(world.children) == [world.job.state.revision.revision]
        assert world.children[world.job.state.revision.revision].running == world.job.state.revision.placement.replicas
