"""A pod of a gang is taken away and its peers fail without it: no failure of the program."""

from __future__ import annotations

import pytest

from rightpool.api.action import Action
from rightpool.api.altered import altered
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.planning.jobs.revision_state import PodFailure
from rightpool.planning.moves.transitions import FAILED
from tests.unit.planning.world import A10G, World, decide, moved, on_a100


def gang() -> World:
    """A job of two pods that has run for a while."""
    world = World.fresh()
    world.rates = {"a10g": 900.0}
    return world.placed(A10G, 900.0)


def evicted(world: World, *failures: PodFailure, number: int = 1, allowed: int | None = 0) -> None:
    """A pod is evicted, seen in a cycle of its own, and then these fail, which is one too many."""
    child = world.children[number]
    child.disrupted_at = float(int(world.now))
    world.live()
    world.cycle()
    child.failed, child.failures_allowed, child.pod_failures = True, allowed, failures


def test_a_gang_that_fails_without_an_evicted_pod_starts_again() -> None:
    world = gang()
    began = world.now
    evicted(world, PodFailure(began - 60.0, began + 31.0))
    world.live()
    world.cycle()
    migration = world.job.state.migration
    assert migration is not None and (migration.action, migration.reason) == (Action.START, Reason.DISRUPTED)
    assert "no failure counts" in migration.message and len(migration.message) <= 160
    for _ in range(3):  # while what has failed is being deleted
        world.cycle()
        assert world.job.state.finished is None
    world.settle()
    revision, entry = world.job.state.revision, world.job.state.history[-1]
    assert revision is not None and (revision.revision, revision.placement) == (2, A10G)
    assert world.children[2].running == 2 and world.job.state.finished is None
    assert (entry.outcome, entry.reason) == (Outcome.CARRIED_OUT, Reason.DISRUPTED)
    assert world.job.state.avoid == () and world.job.state.moves == 0


@pytest.mark.parametrize(
    ("bound", "failed", "allowed"),
    [
        (-60.0, -30.0, 0),  # before the pod was taken away
        (-60.0, 3000.0, 0),  # no peer is waited for that long
        (20.0, 60.0, 0),  # started afterwards: with a whole gang
        (-60.0, 31.0, None),  # the Job failed for another reason, such as its deadline
    ],
)
def test_what_an_eviction_does_not_explain_is_the_programs_failure(
    bound: float, failed: float, allowed: int | None
) -> None:
    world = gang()
    evicted(world, PodFailure(world.now + bound, world.now + failed), allowed=allowed)
    world.settle(2)
    assert world.job.state.finished == FAILED


def test_a_trial_that_is_disrupted_is_over() -> None:
    """One that fills its volumes is evicted each time that it is started."""
    world = gang()
    world.job = altered(world.job, on_trial=True)
    evicted(world, PodFailure(world.now - 60.0, world.now + 31.0))
    world.settle(2)
    assert world.job.state.finished == FAILED and world.job.state.migration is None


def test_failures_of_its_own_count_as_ever() -> None:
    world = gang()
    at = world.now
    own = [PodFailure(at - 600.0 + 60 * number, at - 590.0 + 60 * number) for number in range(3)]
    evicted(world, *own, PodFailure(at - 60.0, at + 31.0), allowed=2)
    world.settle(2)
    assert world.job.state.finished == FAILED


def test_a_pod_that_came_while_its_peer_still_failed_is_excused_with_it() -> None:
    world = gang()
    at = world.now
    evicted(world, PodFailure(at - 60.0, at + 90.0), PodFailure(at + 40.0, at + 95.0), allowed=0)
    world.settle()
    assert world.job.state.finished is None and world.created == [1, 2]


def test_an_eviction_is_remembered_by_the_next_leader() -> None:
    """The pod is long gone, and the Job counts failures of days."""
    world = gang()
    at = world.now
    for number in range(10):
        world.children[1].disrupted_at = at + 10.0 * number
        world.live()
        world.cycle()
    assert len(world.job.state.disruptions) == 8
    world.children[1].disrupted_at = None
    world.children[1].failed, world.children[1].failures_allowed = True, 0
    world.children[1].pod_failures = (PodFailure(at - 60.0, at + 95.0),)
    world.settle()
    assert world.job.state.finished is None


def test_a_single_pod_has_no_peers() -> None:
    world = on_a100()
    evicted(world, PodFailure(world.now - 60.0, world.now + 31.0))
    world.settle(2)
    assert world.job.state.finished == FAILED and world.job.state.disruptions == ()


def test_a_move_on_trial_that_is_disrupted_proves_nothing_against_its_pool() -> None:
    world = moved(on_a100())
    world.reach(Phase.WARMING_UP)
    evicted(world, PodFailure(world.now - 1.0, world.now + 31.0), number=2)
    world.settle()
    entries = [(entry.action, entry.outcome, entry.reason) for entry in world.job.state.history[-2:]]
    assert entries == [
        (Action.MOVE, Outcome.FAILED, Reason.DISRUPTED),
        (Action.START, Outcome.CARRIED_OUT, Reason.DISRUPTED),
    ]
    assert world.job.state.revision is not None and world.job.state.revision.placement == A10G


def test_a_first_place_that_is_disrupted_while_it_starts() -> None:
    world = World.fresh()
    world.cycle(decide(Action.START, A10G, 900.0))
    world.live()
    world.cycle()
    evicted(world, PodFailure(world.now - 1.0, world.now + 5.0))
    world.settle()
    assert world.job.state.finished is None and world.created == [1, 2]
