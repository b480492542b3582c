"""The state machine by example; test_transitions_properties.py has it under any order of events."""

from dataclasses import replace

import pytest

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.avoided import AvoidedPlacement
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.planning.allocate.breaker import outcomes_of
from rightpool.planning.moves.surge import Surge
from rightpool.planning.moves.transitions import COMPLETED, FAILED, advance
from rightpool.planning.offers.gates import avoided as tried_and_left
from rightpool.planning.offers.intent import Intent
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import AUTO, NOW, changed, judged, running
from tests.unit.planning.world import A10G, A100, Child, World, candidate, decide, moved, on_a100


def test_first_start_runs_and_the_meter_starts() -> None:
    world = on_a100()
    assert world.job.state.revision is not None and world.job.state.revision.revision == 1
    assert world.job.state.revision.since is not None
    assert world.job.state.account.cost_per_hour == pytest.approx(40.0)
    assert world.children[1].running == 1


def test_a_price_that_was_missing_counts_from_the_day_it_is_known() -> None:
    world = on_a100()
    assert world.job.state.revision is not None
    ref, since = replace(world.job.state.revision, cost_per_hour=None), world.now
    world.job = changed(world.job, revision=ref, account=Account().started(None, since))
    world.now += 3600.0
    world.cycle(decide(Action.KEEP, A10G, 900.0))
    assert world.job.state.revision is not None and world.job.state.revision.cost_per_hour is None, (
        "it is not known yet"
    )
    world.cycle(decide(Action.KEEP, A10G, 900.0, candidate(A100, 1000.0)))
    assert world.job.state.revision.cost_per_hour == 40.0
    account = world.job.state.account.settled(world.now + 3600.0)
    assert (account.unpriced_seconds, account.spent) == (3600.0, pytest.approx(40.0))


def test_nothing_changes_when_nothing_happens() -> None:
    world = on_a100()
    before = world.job
    world.settle(3)
    assert world.job == before


def test_a_move_that_pays_is_verified() -> None:
    world = moved(on_a100())
    assert world.job.state.migration is not None and world.job.state.migration.phase is Phase.PLANNED
    world.settle()
    assert world.job.state.migration is None
    assert world.job.state.revision is not None and world.job.state.revision.placement == A10G
    entry = world.job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.VERIFIED, Reason.DELIVERED)
    assert entry.realised_throughput == 900.0
    assert set(world.children) == {2}
    assert world.job.state.account.saving_per_hour == pytest.approx(
        (40 / 3600 / 1000 - 8 / 3600 / 900) * 900 * 3600, rel=1e-3
    )
    assert world.job.state.interruption is None
    assert world.job.state.moves == 1


def test_the_windows_before_a_move_are_kept_until_its_verdict() -> None:
    """A restarted operator compares with the same windows."""
    world = on_a100()
    moved(world)
    while world.job.state.migration is not None and world.job.state.migration.phase is not Phase.VERIFYING:
        world.settle(1)
    migration = world.job.state.migration
    assert migration is not None and migration.baseline_rates == (1000.0,) * 3
    assert Migration.from_dict(migration.to_dict()).baseline_rates == migration.baseline_rates


def test_a_noisy_window_that_leaves_the_verdict_open_is_waited_out() -> None:
    world = on_a100(profiling={"window": "10m"})
    moved(world)
    world.rates["a10g"], world.spread = 190.0, 0.5
    world.settle(60)
    assert world.job.state.migration is not None and world.job.state.migration.phase is Phase.VERIFYING
    world.rates["a10g"], world.spread = 900.0, 0.01
    world.settle(1)
    assert world.job.state.history[-1].reason is Reason.DELIVERED


def test_noise_that_does_not_end_is_not_waited_for_for_ever() -> None:
    world = on_a100()
    moved(world)
    world.rates["a10g"], world.spread = 190.0, 0.5
    world.settle(250)
    assert world.job.state.migration is None
    assert (world.job.state.history[-1].outcome, world.job.state.history[-1].reason) == (
        Outcome.VERIFIED,
        Reason.BELOW_PREDICTION,
    )


def test_a_move_that_does_not_pay_is_undone_after_a_save() -> None:
    world = on_a100()
    world.rates["a10g"] = 150.0
    moved(world)
    world.settle()
    assert world.job.state.revision is not None and world.job.state.revision.placement == A100
    assert world.job.state.revision.revision == 3
    entry = world.job.state.history[-1]
    assert entry.outcome is Outcome.ROLLED_BACK
    assert entry.cost > 0
    avoided = world.job.state.avoid[0]
    assert (avoided.pool, avoided.chips, avoided.reason) == ("a10g", 8, Reason.ROLLED_BACK)
    assert (avoided.decision, avoided.message) == (entry.id, "") and len(world.job.state.avoid) == 1
    assert [found.why for found in tried_and_left(world.job, world.now)] == [entry.message], "as the ledger has it"
    assert world.job.state.account.saved < 0


def test_a_faster_pool_that_is_no_faster_is_not_paid_for() -> None:
    world = World.fresh(targets={"objective": "MinimizeTime"})
    world.rates = {"a100": 900.0, "a10g": 900.0}
    world.placed(A10G, 900.0)
    faster = decide(Action.MOVE, A100, 1800.0, candidate(A10G, 900.0, 0.02))
    faster.decision = replace(faster.decision, reason=Reason.FASTER_PLACEMENT_MEETS_TARGETS)
    world.cycle(faster)
    world.settle()
    assert world.job.state.revision is not None and world.job.state.revision.placement == A10G
    entry = world.job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.ROLLED_BACK, Reason.ROLLED_BACK)
    assert entry.message.startswith("not faster than before, and the placement before cost less; ")


def test_what_is_promised_follows_the_job_until_it_leaves() -> None:
    """It was decided at 1000 samples/s; when it leaves, days later, the job does 500 wherever it is."""
    world = on_a100(adaptation={"requireApproval": True})
    moved(world)
    world.rates = {"a100": 500.0, "a10g": 450.0}
    world.settle(3)
    world.job = replace(world.job, approved="d-2")
    world.settle()
    entry = world.job.state.history[-1]
    assert entry.baseline_throughput == 500.0
    assert entry.predicted_throughput == pytest.approx(450.0)
    assert entry.predicted_cost_per_million == pytest.approx(8.0 / 3600 / 450.0 * 1e6)
    assert (entry.outcome, entry.reason) == (Outcome.VERIFIED, Reason.DELIVERED)


def test_no_checkpoint_no_move() -> None:
    world = on_a100()
    world.answers = False
    moved(world)
    world.settle()
    assert world.job.state.revision is not None and world.job.state.revision.revision == 1
    assert (world.job.state.history[-1].outcome, world.job.state.history[-1].reason) == (
        Outcome.HELD,
        Reason.CHECKPOINT_TIMEOUT,
    )
    assert world.created == [1]
    assert world.job.state.last_move_at is not None


def test_an_old_save_that_is_heard_of_late_is_no_answer() -> None:
    world = on_a100()
    world.answers = False
    moved(world)
    world.live()
    world.cycle()
    assert world.job.state.migration is not None and world.job.state.migration.saved_before is None
    world.saves = world.now - 100.0  # the first reading after a restart of the operator
    world.settle()
    assert world.job.state.history[-1].outcome is Outcome.HELD


def test_a_target_that_never_starts_leads_back() -> None:
    world = on_a100()
    world.stuck_pools = {"a10g"}
    moved(world)
    world.settle(200)
    assert world.job.state.revision is not None and world.job.state.revision.placement == A100
    assert world.job.state.history[-1].reason == Reason.START_DEADLINE_EXCEEDED


def test_a_target_that_its_queue_does_not_admit_leads_back_and_says_so() -> None:
    world = on_a100(queue_name="research")
    world.admits = False
    moved(world)
    world.settle(200)
    migration = world.job.state.migration
    assert migration is not None and migration.rolling_back, "it waits where it came from as long as it takes"
    assert migration.failure is Reason.START_PREVENTED
    world.settle(500)
    assert world.job.state.migration is not None
    world.admits = True
    world.settle()
    entry = world.job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.ROLLED_BACK, Reason.START_PREVENTED)
    assert "queue research has not admitted it" in entry.message


def test_a_job_that_is_preempted_before_the_verdict_is_judged_when_it_runs_again() -> None:
    world = on_a100(queue_name="research")
    world.rates["a10g"] = 900.0
    moved(world)
    world.reach(Phase.WARMING_UP)
    world.admits = False
    spent = None
    for _ in range(1000):  # longer than a verdict is waited for
        world.live()
        world.cycle()
        spent = spent if spent is not None or world.children[2].pods else world.job.state.account.spent_by(world.now)
    assert world.job.state.migration is not None and world.job.state.history == ()
    assert spent is not None and world.job.state.account.spent_by(world.now) == pytest.approx(spent)
    world.admits = True
    world.settle()
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED


def test_a_target_on_which_the_program_fails_leads_back() -> None:
    world = moved(on_a100())
    world.reach(Phase.WARMING_UP)
    world.children[2].failed = True
    world.settle()
    assert world.job.state.finished is None
    assert world.job.state.history[-1].outcome is Outcome.ROLLED_BACK
    assert world.job.state.revision is not None and world.job.state.revision.placement == A100


def test_without_a_profile_nothing_is_claimed() -> None:
    world = on_a100()
    del world.rates["a10g"]
    moved(world)
    world.settle(500)
    assert (world.job.state.history[-1].outcome, world.job.state.history[-1].reason) == (
        Outcome.FAILED,
        Reason.TELEMETRY_UNAVAILABLE,
    )
    assert world.job.state.revision is not None and world.job.state.revision.placement == A10G


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase not in Surge.phases])
def test_a_job_that_completes_in_any_phase_is_completed(phase: Phase) -> None:
    world = moved(on_a100())
    for _ in range(60):
        migration = world.job.state.migration
        if migration is not None and migration.phase is phase:
            break
        world.live()
        world.cycle()
    assert world.job.state.migration is not None and world.job.state.migration.phase is phase
    if not world.children:  # between two Revisions there is nothing that could complete
        world.live()
        world.cycle()
    number = max(world.children)
    world.children[number].deleting = False
    world.children[number].succeeded = True
    world.settle(3)
    assert world.job.state.finished == COMPLETED
    assert world.job.state.migration is None
    assert world.job.state.account.since is None


def test_a_job_whose_pods_have_just_ended_well_is_not_started_anew_elsewhere() -> None:
    world = on_a100()
    world.answers = False
    moved(world)
    world.children[1].finishing = True
    world.settle(3)
    assert world.job.state.migration is not None and world.job.state.migration.phase is Phase.CHECKPOINTING
    world.children[1].succeeded = True
    world.settle(3)
    assert (world.job.state.finished, world.created) == (COMPLETED, [1])


@pytest.mark.parametrize("phase", [Phase.CHECKPOINTING, Phase.DRAINING])
def test_a_program_that_fails_on_the_way_back_from_a_target_is_back(phase: Phase) -> None:
    world = moved(on_a100())
    world.rates["a10g"] = 10.0
    for _ in range(60):
        migration = world.job.state.migration
        if migration is not None and migration.rolling_back and migration.phase is phase:
            break
        world.live()
        world.cycle()
    world.children[2].failed = True
    world.settle()
    assert world.job.state.finished is None
    assert world.job.state.history[-1].outcome is Outcome.ROLLED_BACK
    assert world.job.state.revision is not None and world.job.state.revision.placement == A100


def test_a_job_that_fails_is_failed() -> None:
    world = on_a100()
    world.children[1].failed = True
    world.settle(2)
    assert world.job.state.finished == FAILED


@pytest.mark.parametrize("phase", [Phase.PLANNED, Phase.CHECKPOINTING, Phase.DRAINING, Phase.STARTING, Phase.VERIFYING])
def test_an_edit_of_the_template_wins_in_any_phase(phase: Phase) -> None:
    world = moved(on_a100())
    world.reach(phase)
    world.job = replace(world.job, workload_hash="h2")
    world.settle()
    assert world.job.state.migration is None
    assert world.job.state.revision is not None
    if world.job.state.revision.workload_hash != "h2":
        world.cycle(decide(Action.UPDATE, world.job.state.revision.placement, 900.0))
        world.settle()
    assert world.job.state.revision.workload_hash == "h2"
    assert world.children[world.job.state.revision.revision].running > 0


def test_an_image_that_is_edited_on_the_way_is_not_verified_against_the_old_one() -> None:
    world = moved(on_a100())
    for _ in range(40):
        migration = world.job.state.migration
        if migration is not None and migration.phase is Phase.DRAINING:
            break
        world.live()
        world.cycle()
    world.job = replace(world.job, workload_hash="h2")
    world.settle()
    (entry,) = (entry for entry in world.job.state.history if entry.action is not Action.UPDATE)
    assert entry.outcome is Outcome.SUPERSEDED
    assert world.job.state.revision is not None and world.job.state.revision.workload_hash == "h2"
    assert world.children[world.job.state.revision.revision].running > 0


def test_a_move_waits_for_approval() -> None:
    world = on_a100(adaptation={"requireApproval": True})
    moved(world)
    world.settle(5)
    assert world.job.state.migration is not None and world.job.state.migration.phase is Phase.PLANNED
    world.job = replace(world.job, approved="d-1")
    world.settle(3)
    assert world.job.state.migration.phase is Phase.PLANNED, "the approval of another decision must not count"
    world.job = replace(world.job, approved=world.job.state.migration.id)
    world.settle()
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED


def edit(world: World) -> None:
    """The user edits the spec so that it does not allow the A100 pool any more."""
    world.job = replace(world.job, generation=2)
    leave = decide(Action.MOVE, A10G, 900.0, candidate(A100, 1000.0, 0.02))
    leave.intent = Intent.LEAVE
    leave.decision = replace(leave.decision, reason=Reason.PLACEMENT_DISALLOWED)
    world.cycle(leave)


def test_what_the_user_demands_needs_no_approval_and_is_never_undone() -> None:
    world = on_a100(adaptation={"requireApproval": True})
    world.rates["a10g"] = 10.0
    edit(world)
    world.settle()
    assert world.job.state.revision is not None and world.job.state.revision.placement == A10G
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED
    assert world.job.state.moves == 0, "not one of the operator's own"


def test_what_the_spec_allows_is_remembered_as_allowed() -> None:
    world = on_a100()
    assert world.job.state.revision is not None and world.job.state.revision.generation == 1
    world.job = replace(world.job, generation=2)
    assert world.job.edited
    stays = decide(Action.KEEP, A100, 1000.0, candidate(A100, 1000.0))
    world.cycle(stays)
    assert not world.job.edited
    before = world.job
    world.cycle(stays)
    assert world.job == before


def test_a_stray_child_is_ended_before_anything_starts() -> None:
    world = moved(on_a100())
    world.reach(Phase.STARTING)
    world.children.clear()
    world.children[7] = Child(replicas=1, suspended=True)  # as a leader creates it that comes too late
    world.settle()
    world.check()
    assert 7 not in world.children
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED


def test_what_is_avoided_until_the_spec_changes_is_forgotten_with_an_edit() -> None:
    for_good = AvoidedPlacement("a10g", 8, Reason.ROLLED_BACK)
    for_now = replace(for_good, chips=4, until=NOW + 60.0)
    job = running(avoid=(for_good, for_now))
    assert job.state.revision is not None
    seen = changed(job, revision=replace(job.state.revision, generation=1))
    assert advance(seen, judged(seen), AUTO, NOW, decision_text).state.avoid == (for_good, for_now)
    edited = replace(seen, generation=2)
    after = advance(edited, judged(edited), AUTO, NOW, decision_text).state
    assert after.avoid == (for_now,)
    assert after.revision is not None and after.revision.generation == 2


@pytest.mark.parametrize(
    ("prevented", "reason", "undone"), [(False, "StartDeadlineExceeded", True), (True, "StartPrevented", None)]
)
def test_what_the_job_itself_asks_for_is_not_held_against_the_pool(
    prevented: bool, reason: str, undone: bool | None
) -> None:
    world = on_a100()
    world.stuck_pools = {"a10g"}
    moved(world).reach(Phase.STARTING)
    for _ in range(200):
        world.live()
        world.cycle()
        if 2 in world.children:
            world.children[2].prevented = prevented
    entry = world.job.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.ROLLED_BACK, reason)
    assert world.job.state.avoid[-1].pool == "a10g"
    outcomes = outcomes_of([world.job], {}, world.now)
    assert [outcome.undone for outcome in outcomes.get("a10g", ())] == ([] if undone is None else [undone])
