"""Programs that fail in the save that they were asked for: the move is given up and says so, and nothing is lost in
silence."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.api.revision import Revision
from rightpool.planning.allocate.limits import LONGEST_RETRY_SECONDS, save_limit
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import Crash
from rightpool.planning.offers.intent import Intent
from rightpool.reporting.events import Event, JobEvents
from tests.unit.planning.jobs import changed
from tests.unit.planning.world import A10G, A100, ALLOWED, World, candidate, decide, moved, on_a100, spec


def failing(**overrides: object) -> World:
    """A job on the A100 pool that saved 100 s ago by itself, and fails when it is asked to."""
    world = on_a100(**overrides)
    world.counts = world.fails = True
    world.settle(2)
    world.saves = world.now
    world.settle(20)
    return world


def left(world: World, cycles: int = 40) -> list[Event]:
    """So many cycles, and their Events."""
    states, job_events = [world.job], JobEvents()
    for _ in range(cycles):
        world.live()
        world.cycle()
        world.check()
        states.append(world.job)
    return [event for old, new in pairwise(states) for event in job_events.events({}, old, new, (), ())]


def test_a_move_is_given_up_where_the_program_fails_in_its_save() -> None:
    world = moved(failing())
    asked = world.now
    events = left(world)
    assert world.created == [1] and world.job.state.migration is None
    entry = world.job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.HELD, Reason.SAVE_FAILED)
    assert entry.finished_at - asked <= 15.0, "nobody waits for a save that can't come"
    assert "container trainer exited with 1 (Error): OSError: [Errno 28] No space left on device" in entry.message
    assert "since its last save at 1970-01-01T00:17:" in entry.message
    assert "are done again" in entry.message and "samples" in entry.message
    assert "spec.checkpoint.path has room" in entry.message, "the remedy"
    warnings = [event for event in events if event.warning]
    assert [(event.reason, event.note) for event in warnings] == [("SaveFailed", f"{entry.id}: Held: {entry.message}")]
    assert world.children[1].running == 1, "Kubernetes has started it again where it was"


def test_what_is_repeated_is_not_made_up() -> None:
    world = on_a100()
    world.fails = True
    left(moved(world))
    message = world.job.state.history[-1].message
    assert "no save of it is known" in message and "samples" not in message


@pytest.mark.parametrize("restarted", [False, True])
def test_one_of_several_pods_or_one_that_is_started_again_in_place_is_enough(restarted: bool) -> None:
    """The Job's other pods run on, or the kubelet has started the container again by the time that it is seen."""
    world = moved(failing())
    world.fails = world.answers = False
    world.settle(2)
    child = world.children[1]
    child.crash = Crash(1, ALLOWED, "trainer", 137, "OOMKilled", world.now)
    child.running = 1 if restarted else 0
    world.cycle()
    assert world.job.state.history[-1].reason == Reason.SAVE_FAILED
    assert "trainer exited with 137 (OOMKilled)" in world.job.state.history[-1].message


def test_a_failure_before_the_request_is_none_of_the_save() -> None:
    world = on_a100()
    world.children[1].crash = Crash(1, ALLOWED, "trainer", 1, "Error", world.now - 60.0)
    moved(world)
    world.settle()
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED


def test_a_save_that_was_complete_before_the_program_failed_counts() -> None:
    world = failing()
    world.fails = False
    moved(world).settle(1)
    assert world.saves == world.now
    child = world.children[1]
    child.crash, child.pods, child.running = Crash(1, ALLOWED, "trainer", 1, "Error", world.now + 1.0), 0, 0
    world.settle()
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED


def test_who_saves_by_itself_is_waited_for() -> None:
    """Nobody has asked it, and once it is started again its next save comes."""
    world = moved(failing(checkpoint={"mode": "Periodic", "timeout": "10m"}))
    world.fails = world.answers = False
    world.settle(1)
    child = world.children[1]
    child.crash, child.pods, child.running = Crash(1, ALLOWED, "trainer", 1, "Error", world.now), 0, 0
    world.settle(20)
    assert world.job.state.migration is not None and world.job.state.migration.phase is Phase.CHECKPOINTING
    world.saves = world.now
    world.settle()
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED


def test_a_job_that_fails_for_good_in_its_save_is_not_held_in_between() -> None:
    world = failing()
    world.children[1].crash = Crash(ALLOWED, ALLOWED, "trainer", 1, "Error", world.now - 60.0)
    left(moved(world))
    entry = world.job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.SUPERSEDED, Reason.JOB_FAILED)
    assert world.job.state.finished == "Failed"


# --- moves that the user demands ------------------------------------------------------------------------------------


def updated() -> World:
    """The user has replaced the template of a program that fails in its save."""
    world = failing()
    world.job = replace(world.job, workload_hash="h2")
    world.cycle(decide(Action.UPDATE, A100, 1000.0, candidate(A100, 1000.0)))
    return world


def test_an_edit_goes_on_without_the_save_and_says_so_once() -> None:
    world = updated()
    asked = world.now
    events = left(world)
    assert world.created == [1, 2]
    entry = world.job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.CARRIED_OUT, Reason.CHEAPER_POOL_MEETS_TARGETS)
    assert "goes on without it" in entry.message and "No space left on device" in entry.message
    assert "are done again" in entry.message
    assert entry.started_at == asked
    warnings = [event for event in events if event.warning]
    assert [event.reason for event in warnings] == ["SaveFailed"]
    assert "r1 is ended without a new save" in warnings[0].note and "No space left" in warnings[0].note


def test_an_edit_of_a_program_that_fails_by_itself_waits_for_nothing() -> None:
    world = failing(checkpoint={"mode": "Periodic", "timeout": "10m"})
    world.fails = world.answers = False
    world.job = replace(world.job, workload_hash="h2")
    world.cycle(decide(Action.UPDATE, A100, 1000.0, candidate(A100, 1000.0)))
    world.settle(1)
    child = world.children[1]
    child.crash, child.pods, child.running = Crash(1, ALLOWED, "trainer", 1, "Error", world.now), 0, 0
    world.cycle()
    assert world.job.state.migration is not None and world.job.state.migration.phase is Phase.DRAINING
    assert not [event for event in left(world, 20) if event.warning]
    assert world.created == [1, 2]


def test_an_edit_whose_save_does_not_come_says_so_too() -> None:
    world = updated()
    world.fails = world.answers = False
    events = left(world)
    warnings = [event for event in events if event.warning]
    assert [event.reason for event in warnings] == ["CheckpointTimeout"]
    assert "no new checkpoint within 60 s" in world.job.state.history[-1].message


def test_who_may_not_stay_goes_on_without_the_save() -> None:
    """The spec no longer allows where it is: to ask again would be to fail again."""
    world = failing()
    revision = world.job.state.revision
    assert isinstance(revision, Revision)
    world.job = replace(world.job, generation=2)
    made = decide(Action.MOVE, A10G, 900.0, candidate(A100, 1000.0, 0.02))
    made.decision, made.intent = replace(made.decision, reason=Reason.PLACEMENT_DISALLOWED), Intent.LEAVE
    world.cycle(made)
    assert world.job.state.migration is not None and world.job.state.migration.demanded
    events = left(world, 20)
    assert world.created == [1, 2]
    assert [event.reason for event in events if event.warning] == ["SaveFailed"]


def test_a_way_back_is_given_up_too_and_the_job_stays() -> None:
    world = on_a100()
    world.rates["a10g"], world.counts = 150.0, True
    moved(world)
    for _ in range(40):
        world.live()
        world.cycle()
        migration = world.job.state.migration
        world.fails = migration is not None and migration.phase in (Phase.WARMING_UP, Phase.VERIFYING)
        if migration is not None and migration.rolling_back:
            break
    world.fails = True
    world.settle(10)
    entry = world.job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.FAILED, Reason.SAVE_FAILED)
    assert "No space left on device" in entry.message and "worse than before" in entry.message
    assert world.job.state.revision is not None and world.job.state.revision.placement == A10G
    assert save_limit(world.observed(), world.now) is not None, "nor is it asked again at once"


# --- how often it is asked ------------------------------------------------------------------------------------------


def attempts(world: World, days: float) -> int:
    """How often it is asked in that time, with a move that always pays."""
    world.asked.clear()
    end = world.now + days * 86_400.0
    while world.now < end:
        world.live(1800.0)
        seen = world.observed()
        if seen.state.migration is None:
            world.saves = world.now  # it also saves by itself, and does not fail then
        held = seen.state.migration is None and save_limit(seen, world.now)
        world.cycle(None if held else decide(Action.MOVE, A10G, 2000.0))
    return len(world.asked)


def test_each_request_costs_work_so_that_there_are_few() -> None:
    """A Job has six failures by default: they must not be used up by requests for a save."""
    world = failing()
    assert attempts(world, 30.0) == 5  # at once, and after 1, 3, 7 and 15 days
    entry = world.job.state.history[-1]
    assert (entry.attempts, len(world.job.state.history)) == (5, 1)
    limit = save_limit(world.observed(), world.now)
    assert limit is not None and limit.reason is Reason.SAVE_FAILED
    assert "the program failed when it was asked to save, 5 times in a row" in limit.text(world.now)


def test_an_edit_ends_the_wait() -> None:
    world = failing()
    left(moved(world))
    seen = world.observed()
    assert save_limit(seen, world.now + 0.5 * LONGEST_RETRY_SECONDS) is not None
    assert save_limit(seen, world.now + 1.1 * LONGEST_RETRY_SECONDS) is None
    assert save_limit(edited(seen), world.now) is None


def edited(job: Job) -> Job:
    """The same with another spec."""
    return changed(job, generation=job.generation + 1, spec=spec(checkpoint={"timeout": "90s"}))
