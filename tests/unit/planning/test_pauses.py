"""A job that is suspended, by the user or by a spent budget, in a move and without one."""

from dataclasses import replace

import pytest

from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.planning.moves.transitions import advance
from rightpool.reporting.decision_texts import decision_text
from rightpool.reporting.events import Event, JobEvents
from tests.unit.planning.world import moved, on_a100, spec


def test_suspend_stops_the_pods_and_the_meter_and_resume_restarts() -> None:
    world = on_a100()
    running = world.job.spec
    world.job = replace(world.job, spec=spec(suspend=True))
    world.settle(4)
    assert world.children[1].pods == 0
    assert world.job.state.account.since is None
    world.job = replace(world.job, spec=running)
    world.settle(4)
    assert world.children[1].running == 1
    assert world.job.state.account.since is not None


def test_suspending_asks_for_a_save_first() -> None:
    world = on_a100()
    world.job = replace(world.job, spec=spec(suspend=True))
    world.cycle()
    asked, pause = world.now, world.job.state.pause
    assert pause is not None and not pause.stopping
    assert world.children[1].running == 1, "it runs on while it saves"
    world.settle(3)
    pause = world.job.state.pause
    assert pause is not None and pause.saved_at is not None and pause.saved_at >= asked
    assert world.children[1].pods == 0


def test_a_program_that_does_not_save_is_stopped_after_the_timeout() -> None:
    world = on_a100()
    world.answers = False
    world.job = replace(world.job, spec=spec(suspend=True, checkpoint={"timeout": "60s"}))
    world.settle(10)
    assert world.children[1].running == 1
    world.settle(5)
    pause = world.job.state.pause
    assert pause is not None and (pause.stopping, pause.saved_at) == (True, None)
    assert pause.unsaved is Reason.CHECKPOINT_TIMEOUT
    assert world.children[1].pods == 0


def test_a_program_that_fails_in_the_save_is_stopped_at_once_and_it_is_said() -> None:
    world = on_a100()
    world.fails = True
    working = world.job.spec
    world.job = replace(world.job, spec=spec(suspend=True, checkpoint={"timeout": "600s"}))
    made: list[Event] = []
    for _ in range(4):
        after = advance(world.observed(), None, world.policy, world.now, decision_text)
        made += JobEvents().events({}, world.job, after, (), ())
        world.settle(1)
    pause = world.job.state.pause
    assert pause is not None and (pause.stopping, pause.unsaved) == (True, Reason.SAVE_FAILED)
    assert world.children[1].pods == 0
    events = [one for one in made if one.warning]
    assert [one.reason for one in events] == ["SaveFailed"]
    assert "exited with 1 (Error): OSError: [Errno 28] No space left on device" in events[0].note
    assert "stopped without it" in events[0].note and "spec.checkpoint.path has room" in events[0].note
    world.fails = False
    world.job = replace(world.job, spec=working)
    world.settle(4)
    assert world.children[1].running == 1 and world.job.state.pause is None


def test_a_program_that_ends_while_it_is_asked_has_not_failed_to_save() -> None:
    world = on_a100()
    world.job = replace(world.job, spec=spec(suspend=True))
    world.answers = False
    world.cycle()
    world.children[1].pods = world.children[1].running = 0
    world.cycle()
    pause = world.job.state.pause
    assert pause is not None and (pause.stopping, pause.unsaved) == (True, None)


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.WARMING_UP, Phase.VERIFYING])
@pytest.mark.parametrize(
    ("realised", "outcome", "pool"), [(900.0, Outcome.VERIFIED, "a10g"), (150.0, Outcome.ROLLED_BACK, "a100")]
)
def test_a_move_that_is_suspended_before_its_verdict_is_judged_after_the_resume(
    phase: Phase, realised: float, outcome: Outcome, pool: str
) -> None:
    world = moved(on_a100())
    world.rates["a10g"], world.spread = realised, 0.5
    world.reach(phase)
    before = world.job.state.migration
    working, world.job = world.job.spec, replace(world.job, spec=spec(suspend=True))
    asked = world.now
    for _ in range(3000):  # longer than any limit of a move
        world.live(60.0)
        world.cycle()
    migration = world.job.state.migration
    assert migration is not None and (migration.id, migration.phase) == (before.id, phase)
    assert world.job.state.pause is not None and world.children[2].pods == 0, "it has stopped nevertheless"
    world.job = replace(world.job, spec=working)
    world.cycle()
    migration = world.job.state.migration
    assert migration is not None and world.job.state.pause is None
    assert world.now - migration.phase_since <= asked - before.phase_since + 60.0, "the pause does not count"
    world.spread = 0.01
    world.settle()
    assert world.job.state.history[-1].outcome is outcome
    assert world.job.state.revision is not None and world.job.state.revision.placement.pool == pool


def test_suspending_a_move_that_is_verified_asks_for_a_save_first() -> None:
    world = moved(on_a100())
    world.spread = 0.5
    world.reach(Phase.VERIFYING)
    world.job = replace(world.job, spec=spec(suspend=True))
    world.cycle()
    assert world.children[2].running == 2 and world.saves == world.now
    world.settle(3)
    pause = world.job.state.pause
    assert pause is not None and pause.saved_at is not None and world.children[2].pods == 0


def test_an_edit_while_a_move_is_suspended_supersedes_it() -> None:
    world = moved(on_a100())
    world.spread = 0.5
    world.reach(Phase.VERIFYING)
    world.job = replace(world.job, spec=spec(suspend=True))
    world.settle(5)
    world.job = replace(world.job, workload_hash="h2")
    world.settle(2)
    assert world.job.state.migration is None
    assert world.job.state.history[-1].outcome is Outcome.SUPERSEDED
    assert world.children[2].pods == 0, "it is suspended still"


def test_a_spent_budget_stops_a_job_whose_move_is_not_verified_yet() -> None:
    world = moved(on_a100())
    world.spread = 0.5
    world.reach(Phase.VERIFYING)
    world.job = replace(world.job, spec=spec(targets={"budget": "0.01", "budgetAction": "Suspend"}))
    world.settle(3)
    assert world.job.state.migration is not None and world.job.state.pause is not None
    assert world.children[2].pods == 0


def test_what_cannot_save_is_stopped_at_once() -> None:
    world = on_a100()
    world.job = replace(world.job, spec=spec(suspend=True, checkpoint={"mode": "None"}))
    world.settle(2)
    assert world.children[1].pods == 0


def test_a_spent_budget_stops_a_job_after_a_save_where_the_user_says_so() -> None:
    world = on_a100()
    spent = float(world.job.state.account.settled(world.now).spent)
    world.job = replace(world.job, spec=spec(targets={"budget": f"{spent + 0.01:.2f}"}))
    world.settle(40)
    assert world.children[1].running == 1, "by default it is only told"
    world.job = replace(world.job, spec=spec(targets={"budget": "0.01", "budgetAction": "Suspend"}))
    world.settle(5)
    pause = world.job.state.pause
    assert pause is not None and pause.reason is Reason.BUDGET_EXCEEDED and pause.saved_at is not None
    assert world.children[1].pods == 0 and world.job.state.account.since is None
    world.job = replace(world.job, spec=spec(targets={"budget": "1000", "budgetAction": "Suspend"}))
    world.settle(5)
    assert world.children[1].running == 1 and world.job.state.pause is None
