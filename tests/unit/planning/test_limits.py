"""What holds back a move that pays."""

import math
from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.estimate import Estimate
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.pause import Pause
from rightpool.api.placement import Placement
from rightpool.api.variation import Variation
from rightpool.planning.allocate.limits import (
    FleetLimits,
    baseline_limit,
    deadline_limit,
    job_limit,
    save_limit,
)
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.moves.commands import RequestCheckpoint, commands
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.evidence import TooManyAnHour, TooManyAtOnce
from rightpool.planning.offers.intent import Intent
from rightpool.planning.work.outlook import Outlook
from rightpool.planning.work.unsaved import late_save
from rightpool.profiles.steadiness import counted
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning import world as world_module
from tests.unit.planning.jobs import (
    AUTO,
    NOW,
    THERE,
    auto_policy,
    changed,
    decision_and_text,
    entry,
    fleet,
    limit_of,
    plan,
    running,
    spec,
)
from tests.unit.planning.world import World, decide
from tests.unit.prediction.fixtures import A100


def under_way(name: str, began: float = NOW - 10) -> Job:
    job = running(name=name)
    assert job.state.revision is not None
    target = replace(job.state.revision, revision=2)
    return changed(
        job,
        migration=Migration(
            "d-1", Action.MOVE, Phase.DRAINING, job.state.revision, target, began, began, Reason.MOVING, "m"
        ),
    )


@pytest.mark.parametrize(
    ("placed", "asked", "at_once", "an_hour"),
    [(100, {}, 10, 60), (2000, {}, 40, 200), (2000, {"maxConcurrentMigrations": 3, "maxMovesPerHour": 5}, 3, 5)],
    ids=["small", "large", "as-the-policy-says"],
)
def test_a_large_fleet_may_move_more(placed: int, asked: dict[str, int], at_once: int, an_hour: int) -> None:
    still, policy = running(name="still"), auto_policy(**asked)
    jobs = [replace(still, key=JobKey("ns", f"still-{number}")) for number in range(placed)]
    moved = under_way("moved")
    begun = [replace(moved, key=JobKey("ns", f"moved-{number}")) for number in range(at_once)]
    assert limit_of(FleetLimits([*jobs, *begun], policy, NOW)) == TooManyAtOnce(at_once)
    assert not isinstance(limit_of(FleetLimits([*jobs, *begun[1:]], policy, NOW)), TooManyAtOnce)
    ended = entry(Outcome.VERIFIED, NOW - 60.0)
    back = [replace(running(name="back", history=(ended,)), key=JobKey("ns", f"back-{n}")) for n in range(an_hour)]
    assert limit_of(FleetLimits([*jobs[an_hour:], *back], policy, NOW)) == TooManyAnHour(an_hour)


@pytest.mark.parametrize(
    ("fields", "sections", "reason", "message"),
    [
        ({"last_move_at": NOW - 60}, {}, Reason.COOLING_DOWN, "adaptation.cooldown is 15 min"),
        ({"moves": 4}, {}, Reason.MOVE_LIMIT_REACHED, "adaptation.maxMoves is 4"),
        ({}, {"adaptation": {"maxMoves": 0}}, Reason.MOVE_LIMIT_REACHED, "adaptation.maxMoves is 0"),
    ],
)
def test_a_jobs_own_limits(fields: dict[str, Any], sections: dict[str, Any], reason: Reason, message: str) -> None:
    job = running(made=spec(**sections), **fields)
    decision, text = decision_and_text(plan(fleet([job])).assessments[job.key])
    assert (decision.action, decision.reason) == (Action.HOLD, reason)
    assert message in text and "% less than now" in text
    assert decision.candidate is not None and decision.candidate.placement.chips == 1
    assert job_limit(job, Intent.LEAVE, AUTO, NOW) is None


def test_a_missed_target_is_repaired_however_often_and_lately_the_job_was_moved() -> None:
    job = running(moves=4, last_move_at=NOW - 60)
    assert job_limit(job, Intent.REPAIR, AUTO, NOW) is None
    settled = running(made=spec(adaptation={"maxMoves": 0}))
    limit = job_limit(settled, Intent.REPAIR, AUTO, NOW)
    assert limit is not None and limit.reason is Reason.MOVE_LIMIT_REACHED, "it stays where it started"


def test_what_only_comes_nearer_to_a_cost_out_of_reach_waits_for_the_cooldown() -> None:
    job = running(moves=4, last_move_at=NOW - 60)
    limit = job_limit(job, Intent.REPAIR, AUTO, NOW, met=False)
    assert limit is not None and limit.reason is Reason.COOLING_DOWN
    targets = {"maxCostPerMillionSamples": "0.0001"}
    free, moved = running(made=spec(targets=targets)), running(made=spec(targets=targets), last_move_at=NOW - 60)
    reason, text = plan(fleet([free])).assessments[free.key].decision.reason, reason_and_text_of(moved)
    assert reason is Reason.MAX_COST_PER_MILLION_SAMPLES_EXCEEDED
    assert text[0] is Reason.COOLING_DOWN and "adaptation.cooldown is 15 min" in text[1]


def reason_and_text_of(job: Job) -> tuple[Reason, str]:
    decision, text = decision_and_text(plan(fleet([job])).assessments[job.key])
    return decision.reason, text


def after(windows: float, *, known: Variation | None = None, **sections: Any) -> Job:
    """A job that has run where it is for so many windows of five minutes."""
    job = running(made=spec(**sections), variation=known)
    assert job.state.revision is not None
    return changed(job, revision=replace(job.state.revision, since=NOW - windows * 300.0))


@pytest.mark.parametrize(
    ("windows", "saved", "waits"),
    [(2, 0.15, True), (11, 0.15, True), (12, 0.15, False), (2, 0.25, True), (2, 0.35, False)],
)
def test_a_saving_that_may_be_noise_waits_for_an_hour_of_windows(windows: int, saved: float, waits: bool) -> None:
    limit = baseline_limit(after(windows), saved, NOW)
    assert (limit is not None) is waits
    if limit is not None:
        assert "is measured for 12 windows of 5 min first" in limit.text(NOW)
        assert baseline_limit(after(windows), saved, NOW + 30.0) == limit, "no status is written for the time"
    assert baseline_limit(after(12, profiling={"window": "1h"}), saved, NOW) is None, "an hour is enough"


def test_a_job_that_is_known_to_be_steady_does_not_wait_after_a_move() -> None:
    """How its windows differ is the job's, whatever its Revision."""
    known = None
    for number in range(200):
        known = counted(known, 1, 1000.0 + (-1) ** number, NOW + number * 300.0, 300.0)
    assert baseline_limit(after(2, known=known), 0.15, NOW) is None


def test_the_wait_for_windows_holds_the_move_and_not_the_recommendation() -> None:
    assert A100.price.on_demand is not None
    price = replace(A100.price, on_demand=0.84 * A100.price.on_demand)
    cheap = {"a100": A100, "near": replace(A100, name="near", price=price)}
    fixed = {"minChips": 4, "maxChips": 4}
    job = after(3, elasticity=fixed)
    decision, text = decision_and_text(plan(fleet([job], cheap)).assessments[job.key])
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.MORE_WINDOWS_NEEDED)
    assert decision.target == Placement("near", 4, 1) and "12 windows of 5 min" in text
    job = after(12, elasticity=fixed)
    assert plan(fleet([job], cheap)).assessments[job.key].decision.action is Action.MOVE


@pytest.mark.parametrize(
    ("here", "there", "time_left", "waits"),
    [
        (500.0, 2000.0, 20_000.0, True),  # in time by far, also after an hour
        (500.0, 2000.0, 6600.0, False),  # in time now, and not in an hour
        (10.0, 40.0, 40_000.0, True),  # by one window it would never be in time: so slow it can't be
        (10.0, 40.0, 7200.0, False),  # an hour is much of what is left
    ],
)
def test_a_repair_for_a_deadline_waits_where_there_is_time(
    here: float, there: float, time_left: float, waits: bool
) -> None:
    left = Outlook(1e7, 60.0, 3600.0, time_left, math.nan)
    limit = deadline_limit(after(1), here, Estimate(there, 0.1), left, NOW)
    assert (limit is not None) is waits
    if limit is not None:
        assert "the deadline leaves time for them" in limit.text(NOW)
    assert deadline_limit(after(12), here, Estimate(there, 0.1), left, NOW) is None


def test_a_move_that_is_suspended_takes_no_turn() -> None:
    """It may be for days."""
    stopped = changed(under_way("a"), pause=Pause(Reason.SUSPENDED, NOW - 60, stopping=True))
    assert limit_of(FleetLimits([stopped], auto_policy(maxConcurrentMigrations=1), NOW)) is None
    assert limit_of(FleetLimits([under_way("a")], auto_policy(maxConcurrentMigrations=1), NOW)) is not None


@pytest.mark.parametrize(("reason", "counts"), [(Reason.DEADLINE_MISSED, 0), (Reason.CHEAPER_POOL_MEETS_TARGETS, 1)])
def test_a_repair_does_not_use_up_the_moves_that_save(reason: Reason, counts: int) -> None:
    world = World.fresh()
    world.rates = {"a100": 1000.0, "a10g": 2000.0}
    world.placed(Placement("a100", 8, 1), 1000.0)
    made = decide(Action.MOVE, Placement("a10g", 8, 2), 2000.0)
    made.decision = replace(made.decision, reason=reason)
    world.cycle(made)
    world.settle()
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED
    assert world.job.state.moves == counts


def test_a_revision_runs_for_a_while_first() -> None:
    job = running()
    assert job.state.revision is not None
    job = changed(job, revision=replace(job.state.revision, since=NOW - 299))
    assert plan(fleet([job])).assessments[job.key].decision.reason is Reason.MINIMUM_RUN_TIME
    assert plan(fleet([job], now=NOW + 1)).assessments[job.key].decision.action is Action.RESIZE


def in_namespace(job: Job, namespace: str) -> Job:
    return replace(job, key=JobKey(namespace, job.key.name))


def test_one_namespace_leaves_moves_to_others() -> None:
    """Ten jobs that never save held every move of the fleet."""
    own = [in_namespace(under_way(f"own-{number}"), "own") for number in range(8)]
    mine, theirs = in_namespace(running(name="more"), "own"), in_namespace(running(name="job"), "theirs")
    ten = auto_policy(maxConcurrentMigrations=10)
    limits = FleetLimits([*own, mine, theirs], ten, NOW)
    limit = limits.concurrency_limit(mine)
    assert limit is not None and limit.reason is Reason.MIGRATION_LIMIT_REACHED
    assert limit.text(NOW) == (
        "8 jobs of the namespace are being moved; the rest of maxConcurrentMigrations is for other namespaces"
    )
    assert limits.concurrency_limit(theirs) is None
    for number in range(4):  # edits are not held back, and take no place of others
        limits.admit(in_namespace(running(name=f"edit-{number}"), "own"), THERE, demanded=True)
    assert limits.concurrency_limit(theirs) is None
    for number in range(2):
        limits.admit(in_namespace(running(name=f"other-{number}"), "theirs"), THERE, demanded=False)
    assert limits.concurrency_limit(theirs) is not None
    assert FleetLimits([*own, mine], ten, NOW).concurrency_limit(mine) is None, "it is alone"


def test_so_many_at_once() -> None:
    limits = FleetLimits([under_way("a"), under_way("b")], auto_policy(maxConcurrentMigrations=3), NOW)
    assert limit_of(limits) is None
    limits.admit(running(), THERE, demanded=False)
    for intent in (Intent.SAVE, Intent.LEAVE):
        limit = limit_of(limits, intent)
        assert limit is not None and limit.reason is Reason.MIGRATION_LIMIT_REACHED
        assert "3 jobs" in limit.text(NOW)


def test_so_many_an_hour() -> None:
    jobs = [
        under_way("a"),
        under_way("b", NOW - 7200),
        running(name="c", history=(entry(Outcome.VERIFIED, NOW - 600), entry(Outcome.HELD, NOW - 500))),
        running(
            name="d", history=(entry(Outcome.VERIFIED, NOW - 5000), entry(Outcome.CARRIED_OUT, NOW, action="Update"))
        ),
    ]
    limits = FleetLimits(jobs, auto_policy(maxMovesPerHour=2), NOW)
    limit = limit_of(limits)
    assert limit is not None and limit.reason is Reason.MOVE_RATE_LIMIT_REACHED
    assert limit_of(limits, Intent.LEAVE) is None
    assert limit_of(FleetLimits(jobs, auto_policy(maxMovesPerHour=3), NOW)) is None


# --- approval --------------------------------------------------------------------------------------------------------


def asked(name: str, approved: bool = False) -> Job:
    """A job whose move waits for approval, or was approved just now."""
    job = under_way(name)
    migration = job.state.migration
    assert migration is not None
    target = replace(migration.target, placement=Placement("a100", 1, 1))
    planned = replace(migration, phase=Phase.PLANNED, target=target, created_at=NOW - 100)
    job = changed(job, migration=planned, spec=spec(adaptation={"requireApproval": True}))
    return replace(job, approved="d-1" if approved else None)


def test_who_waits_for_approval_uses_up_nothing() -> None:
    limits = FleetLimits([asked(str(n)) for n in range(10)], auto_policy(), NOW)
    assert limit_of(limits) is None
    made = plan(fleet([*(asked(str(n)) for n in range(10)), running(name="mover")], policy=auto_policy()))
    mover = next(a for key, a in made.assessments.items() if key.name == "mover")
    assert mover.decision.action is Action.RESIZE


def test_those_that_were_approved_together_go_so_many_at_once() -> None:
    jobs = [asked(str(n), approved=True) for n in range(5)]
    two = auto_policy(maxConcurrentMigrations=2)
    made = plan(fleet(jobs, policy=two))
    begun, waits = [], []
    for job in jobs:
        assessment = made.assessments[job.key]
        after = advance(job, assessment, two, NOW, decision_text)
        assert after.state.migration is not None
        (begun if after.state.migration.phase is Phase.CHECKPOINTING else waits).append(assessment)
    assert (len(begun), len(waits)) == (2, 3)
    assert waits[0].decision.reason is Reason.MIGRATION_LIMIT_REACHED
    assert "2 jobs are being moved" in decision_and_text(waits[0])[1]


# --- saves that do not come ------------------------------------------------------------------------------------------


def unsaved(seconds: float, **overrides: Any) -> World:
    """A world whose program never saves, planned for that long with a move that always pays."""
    world = World.fresh(**overrides)
    world.answers = False
    world.placed(world_module.A100, 1000.0)
    past = tuple(entry(Outcome.VERIFIED, world.now - 60.0, id=f"d-{n}") for n in range(3))
    world.job = changed(world.job, history=past)
    end = world.now + seconds
    while world.now < end:
        world.live(60.0)
        seen = world.observed()
        held = seen.state.migration is None and (
            save_limit(seen, world.now) or job_limit(seen, Intent.SAVE, world.policy, world.now)
        )
        world.cycle(None if held else decide(Action.MOVE, world_module.A10G, 2000.0))
    return world


def test_a_program_that_never_saves_is_asked_ever_more_seldom_and_keeps_its_ledger() -> None:
    world = unsaved(86_400.0)
    *kept, last = world.job.state.history
    assert [made.outcome for made in kept] == [Outcome.VERIFIED] * 3, "what moves have shown is not pushed out"
    assert (last.outcome, last.reason) == (Outcome.HELD, Reason.CHECKPOINT_TIMEOUT)
    assert 5 <= last.attempts <= 8
    limit = save_limit(world.observed(), world.now)
    assert limit is not None and "times in a row; it is asked for again at" in limit.text(world.now)


def test_a_save_that_is_seen_ends_the_wait() -> None:
    world = unsaved(6000.0)
    assert save_limit(world.observed(), world.now) is not None
    world.saves = world.now
    assert save_limit(world.observed(), world.now) is None
    periodic = changed(world.observed(), spec=world_module.spec(checkpoint={"mode": "Periodic"}))
    assert save_limit(periodic, world.now) is not None


def test_a_save_that_comes_too_late_each_time_ends_no_wait_once_it_is_old() -> None:
    world = unsaved(6000.0)
    asked_at = world.job.state.history[-1].finished_at
    assert world.job.state.history[-1].attempts > 1
    world.now = world.saves = asked_at + 200.0
    timeout = world.job.spec.checkpoint.timeout.total_seconds()
    assert late_save(world.observed(), world.now + timeout) == world.saves
    assert save_limit(world.observed(), world.now + timeout) is None
    assert late_save(world.observed(), world.now + timeout + 1.0) is None
    limit = save_limit(world.observed(), world.now + timeout + 1.0)
    assert limit is not None
    text = limit.text(world.now)
    assert "the save came 3 min too late" in text and "set checkpoint.timeout to more" in text


def test_a_job_that_leaves_with_a_late_save_is_not_asked_for_another_one() -> None:
    world = unsaved(6000.0)
    world.now = world.saves = world.job.state.history[-1].finished_at + 20.0
    asked = decide(Action.MOVE, world_module.A10G, 2000.0)
    job, phases = world.observed(), []
    while not phases or phases[-1] not in (Phase.DRAINING, None):
        job = advance(job, asked, world.policy, world.now, decision_text)
        phases.append(job.state.migration and job.state.migration.phase)
        assert not any(isinstance(one, RequestCheckpoint) for one in commands(job)), "it would be ended while it saves"
    assert phases[-2:] == [Phase.CHECKPOINTING, Phase.DRAINING]
    assert job.state.migration is not None and job.state.migration.saved_at == world.saves


def test_a_job_that_has_to_leave_is_not_asked_without_a_pause_either() -> None:
    left = entry(Outcome.HELD, NOW - 60, reason=Reason.CHECKPOINT_TIMEOUT)
    job = running(made=spec(placement={"pools": {"deny": ["a100"]}}), history=(left,))
    made = plan(fleet([job])).assessments[job.key]
    assert (made.decision.action, made.decision.reason) == (Action.HOLD, Reason.CHECKPOINT_TIMEOUT)
