"""Money and progress, against a world that meters for itself."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.planning.books.accounting import accounted, hung
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.intent import Intent
from rightpool.planning.work.idling import idle_since
from rightpool.planning.work.progress import progress_of
from rightpool.profiles.profile import Steadiness
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import changed
from tests.unit.planning.test_transitions_properties import EVENTS, happen
from tests.unit.planning.world import A10G, A100, World, candidate, decide, spec

HOUR = 3600.0


def counting(**overrides: object) -> World:
    """A world in which samples are counted, with the job on the A100 pool for a while."""
    world = World.fresh(**overrides)
    world.rates = {"a100": 1000.0, "a10g": 900.0}
    world.counts = True
    return world.placed(A100, 1000.0)


def go(world: World, target: Placement, source: Placement, cycles: int = 40) -> World:
    """A move of the operator's own, to its end."""
    world.cycle(decide(Action.MOVE, target, 900.0, candidate(source, 1000.0, 0.02)))
    world.settle(cycles)
    return world


def stay(world: World, hours: float) -> None:
    for _ in range(round(hours * 60)):
        world.live(60.0)
        world.cycle()


def spent(world: World) -> float:
    return world.job.state.account.settled(world.now).spent


def saved(world: World) -> float:
    return world.job.state.account.settled(world.now).saved


def test_starting_pods_and_loading_are_paid() -> None:
    world = World.fresh()
    world.rates, world.counts, world.loading = {"a100": 1000.0, "a10g": 900.0}, True, 300.0
    world.placed(A100, 1000.0)
    assert spent(world) == pytest.approx(world.paid) and world.paid > 0
    go(world, A10G, A100, 200)
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED
    assert spent(world) == pytest.approx(world.paid)


def test_pods_in_a_queue_cost_nothing() -> None:
    world = counting()
    before = world.paid
    world.stuck_pools = {"a10g"}
    world.cycle(decide(Action.MOVE, A10G, 900.0, candidate(A100, 1000.0, 0.02)))
    world.settle(60)
    assert world.job.state.migration is not None and world.job.state.migration.phase is Phase.STARTING
    assert world.job.state.account.since is None
    assert spent(world) == pytest.approx(world.paid) and world.paid - before < 40.0 * 60 / HOUR


def test_a_price_that_changes_counts_from_then_on() -> None:
    world = counting()
    stay(world, 1.0)
    dear = replace(candidate(A100, 1000.0), cost_per_hour=80.0)
    world.prices["a100"] = 10.0
    world.cycle(decide(Action.KEEP, A10G, 900.0, dear))
    stay(world, 1.0)
    assert spent(world) == pytest.approx(world.paid)
    assert world.job.state.revision is not None and world.job.state.revision.cost_per_hour == 80.0


def test_lost_time_ends_when_steps_have_caught_up() -> None:
    world = counting()
    stay(world, 1.0)
    world.loading = 200.0
    go(world, A10G, A100, 200)
    entry = world.job.state.history[-1]
    assert entry.outcome is Outcome.VERIFIED
    assert 200.0 <= entry.lost_seconds <= 230.0
    assert entry.cost == pytest.approx(8.0 * 205 / HOUR, rel=0.1)
    assert world.job.state.interruption is None


@pytest.mark.parametrize("demanded", [False, True])
def test_what_is_paid_while_a_program_hangs_where_it_was_moved_to_is_lost(demanded: bool) -> None:
    """Until it works where it came from. demanded: the user no longer allowed that place, and did not save by it."""
    world = counting(profiling={"window": "5m"})
    asked = decide(Action.MOVE, A10G, 900.0, candidate(A100, 1000.0, 0.02))
    if demanded:
        asked.decision = replace(asked.decision, reason=Reason.PLACEMENT_DISALLOWED)
        asked.intent, world.job = Intent.LEAVE, replace(world.job, generation=2)
    world.hung_pools, world.rates["a10g"] = {"a10g"}, 0.0
    world.cycle(asked)
    world.reach(Phase.STARTING)
    world.answers = False
    left, paid = world.now, world.paid
    while world.job.state.migration is not None or world.job.state.interruption is not None:
        stay(world, 1.0 / 60.0)
    entry = world.job.state.history[-1]
    assert entry.hung and entry.outcome is (Outcome.FAILED if demanded else Outcome.ROLLED_BACK)
    assert HOUR < world.now - left < 1.2 * HOUR
    assert entry.lost_seconds == pytest.approx(world.now - left, abs=120.0)
    assert entry.cost == pytest.approx(world.paid - paid, rel=0.1)
    assert saved(world) == pytest.approx(0.0 if demanded else -entry.cost, abs=1e-3)
    stay(world, 1.0)
    assert saved(world) == pytest.approx(0.0 if demanded else -entry.cost, abs=1e-3)


def test_a_minute_without_readings_while_a_program_hangs_loses_none_of_its_time() -> None:
    """Whether its steps are counted is not known then: it may be unseen by now, and is not."""
    world = counting(profiling={"window": "5m"})
    world.hung_pools, world.rates["a10g"] = {"a10g"}, 0.0
    world.cycle(decide(Action.MOVE, A10G, 900.0, candidate(A100, 1000.0, 0.02)))
    world.reach(Phase.STARTING)
    world.answers = False
    left, paid = world.now, world.paid
    stay(world, 0.7)
    seen = world.observed()
    assert seen.observed.profile is not None
    stale = replace(seen.observed.profile, steadiness=Steadiness.STALE)
    world.now += 60.0
    world.persist(advance(changed(seen, profile=stale), None, world.policy, world.now, decision_text))
    assert world.job.state.migration is not None
    while world.job.state.migration is not None or world.job.state.interruption is not None:
        stay(world, 1.0 / 60.0)
    entry = world.job.state.history[-1]
    assert entry.hung and entry.lost_seconds == pytest.approx(world.now - left, abs=120.0)
    assert entry.cost == pytest.approx(world.paid - paid, rel=0.1)
    assert saved(world) == pytest.approx(-entry.cost, abs=1e-3)


def test_what_nobody_reads_after_a_move_loses_what_its_start_takes() -> None:
    """It may have worked since its pods run."""
    world = counting()
    del world.rates["a10g"]
    go(world, A10G, A100, 500)
    entry = world.job.state.history[-1]
    assert entry.reason == Reason.TELEMETRY_UNAVAILABLE and 0.0 < entry.lost_seconds < 60.0
    assert entry.cost == pytest.approx(8.0 * entry.lost_seconds / HOUR, abs=0.02)
    assert saved(world) == pytest.approx(-entry.cost, abs=1e-3)


@pytest.mark.parametrize("demanded", [False, True])
def test_what_hangs_after_its_first_steps_is_interrupted_since_its_last_one(demanded: bool) -> None:
    world = counting()
    world.cycle(decide(Action.MOVE, A10G, 900.0, candidate(A100, 1000.0, 0.02)))
    world.reach(Phase.VERIFYING)
    world.live(60.0)
    job = accounted(world.observed(), None, PlacementPolicySpec(), world.now)
    migration = job.state.migration
    assert migration is not None and job.state.interruption is None, "it has caught up"
    if demanded:
        source = replace(migration.source, generation=1)
        target = replace(migration.target, generation=2)
        migration = replace(migration, source=source, target=target, reason=Reason.PLACEMENT_DISALLOWED)
    before, at = job.state.account.settled(world.now), world.now
    found = hung(job, migration, at + 600.0, at + 600.0 + HOUR).state
    assert found.interruption is not None and found.interruption.since == at + 600.0
    assert found.account.spent == pytest.approx(found.interruption.spent_before + 8.0)
    assert found.account.saved - before.saved == pytest.approx(0.0 if demanded else -8.0)
    assert found.interruption.demanded is demanded
    early = hung(job, migration, 0.0, at + HOUR).state
    assert early.interruption is not None and migration.stopped_at is not None
    assert early.interruption.since == migration.stopped_at + migration.lost_seconds, "nothing is lost twice"


def test_what_hangs_since_it_was_resumed_has_not_hung_while_it_was_suspended() -> None:
    world = counting(profiling={"window": "5m"})
    world.cycle(decide(Action.MOVE, A10G, 900.0, candidate(A100, 1000.0, 0.02)))
    world.reach(Phase.WARMING_UP)
    migration = world.job.state.migration
    assert migration is not None and migration.target.since is not None
    world.live(600.0)
    assert idle_since(world.observed(), migration, world.now) > migration.target.since + 500.0
    child = world.children[migration.target.revision]
    child.suspended = True
    world.live(2 * HOUR)
    child.suspended, world.rates["a10g"] = False, 0.0
    world.live()
    resumed = world.now
    for _ in range(60):
        world.live(60.0)
    assert idle_since(world.observed(), migration, world.now) == pytest.approx(resumed, abs=60.0)


def test_what_a_move_costs_and_saves() -> None:
    world = counting()
    stay(world, 1.0)
    world.loading = 100.0
    go(world, A10G, A100, 100)
    entry = world.job.state.history[-1]
    before = saved(world)
    stay(world, 10.0)
    # An hour there does the work of 0.9 hours here, for which $40 an hour would have been paid.
    assert saved(world) - before == pytest.approx(10 * (40 * 0.9 - 8), rel=0.01)
    there = world.job.state.account.settled(world.now).counterfactual
    assert there is not None and there.placement == A100 and there.speed == pytest.approx(1 / 0.9, rel=0.01)
    assert saved(world) + entry.cost == pytest.approx((40 * 0.9 - 8) * there.dollars / 40.0, rel=0.02)


def test_returning_to_where_it_began_gains_nothing() -> None:
    """The rates of one place differ from day to day; that is no saving."""
    world = counting()
    go(world, A10G, A100)
    world.rates["a100"] = 1150.0
    stay(world, 1.0)
    back = decide(Action.MOVE, A100, 1000.0, candidate(A10G, 900.0, 0.02))
    back.decision = replace(back.decision, reason=Reason.DEADLINE_MISSED)
    world.cycle(back)
    world.settle()
    assert world.job.state.revision is not None and world.job.state.revision.placement == A100
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED
    account = world.job.state.account
    assert account.counterfactual is None and account.saving_per_hour == 0.0
    before = saved(world)
    stay(world, 24.0)
    assert saved(world) == before


def test_what_the_user_edits_ends_what_a_move_saves() -> None:
    world = counting()
    go(world, A10G, A100)
    assert world.job.state.account.saving_per_hour > 0
    one = Placement("a10g", 1, 1)
    world.job = replace(world.job, generation=2)
    asked = decide(Action.UPDATE, one, 100.0, candidate(A10G, 900.0))
    world.cycle(asked)
    world.settle(40)
    assert world.job.state.revision is not None and world.job.state.revision.placement == one
    assert world.job.state.account.saving_per_hour == 0.0 and world.job.state.account.counterfactual is None


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.WARMING_UP, Phase.VERIFYING])
def test_a_move_that_the_user_overtakes_saves_nothing(phase: Phase) -> None:
    world = counting()
    world.cycle(decide(Action.MOVE, A10G, 900.0, candidate(A100, 1000.0, 0.02)))
    world.reach(phase)
    world.job = replace(world.job, workload_hash="h2")
    world.settle(40)
    assert world.job.state.history[-1].outcome is Outcome.SUPERSEDED
    assert world.job.state.account.counterfactual is None
    stay(world, 5.0)
    assert saved(world) <= 0.0


def test_a_move_that_was_not_proven_saves_nothing() -> None:
    world = counting()
    del world.rates["a10g"]
    go(world, A10G, A100, 500)
    assert world.job.state.history[-1].outcome is Outcome.FAILED
    stay(world, 5.0)
    assert world.job.state.account.counterfactual is None and saved(world) <= 0.0


def test_a_job_suspended_while_a_move_is_verified_saves_by_it_once_it_is_proven() -> None:
    world = counting()
    world.cycle(decide(Action.MOVE, A10G, 900.0, candidate(A100, 1000.0, 0.02)))
    world.rates.pop("a10g")
    world.reach(Phase.WARMING_UP)
    running = world.job.spec
    world.job = replace(world.job, spec=spec(suspend=True))
    stay(world, 1.0)
    assert world.job.state.account.since is None, "nothing is held"
    suspended = saved(world)
    stay(world, 1.0)
    assert saved(world) == suspended <= 0.0, "nothing is proven yet, and nothing saved while it is stopped"
    world.job, world.rates["a10g"] = replace(world.job, spec=running), 900.0
    stay(world, 1.0)
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED
    there = world.job.state.account.counterfactual
    assert there is not None and there.speed == pytest.approx(1000 / 900, rel=0.03)
    assert saved(world) == pytest.approx(there.per_hour / there.speed - 8.0, rel=0.2)


def test_a_slow_window_before_the_move_is_no_saving() -> None:
    """The decision is taken when the job happens to be slow; the hour before tells how fast it really is."""
    world = counting()
    stay(world, 1.0)
    world.rates["a100"] = 800.0
    stay(world, 0.1)
    go(world, A10G, A100)
    there = world.job.state.account.counterfactual
    assert there is not None and there.speed == pytest.approx(0.98 * 1000 / 900, rel=0.03)


def test_a_fast_window_after_the_move_is_corrected() -> None:
    world = counting()
    stay(world, 1.0)
    world.rates["a10g"] = 1100.0
    go(world, A10G, A100)
    world.rates["a10g"] = 900.0
    stay(world, 4.0)
    there = world.job.state.account.settled(world.now).counterfactual
    assert there is not None and there.readings == 4
    assert there.speed == pytest.approx(1000 / 900, rel=0.03)
    assert saved(world) == pytest.approx(there.dollars * 0.9 - (spent(world) - there.spent_before), rel=0.05)


def test_what_was_measured_around_a_move_is_weighed_again_for_a_day() -> None:
    world = counting()
    stay(world, 1.0)
    go(world, A10G, A100)
    stay(world, 4.0)
    there = world.job.state.account.counterfactual
    assert there is not None and there.since is not None
    assert there.rate == pytest.approx(900.0, rel=0.01)
    assert there.rate_at == pytest.approx(there.since + 3600.0, abs=120.0)
    world.rates["a10g"] = 450.0
    stay(world, 24.0)
    found = world.job.state.account.counterfactual
    assert found is not None and found.readings == 7
    assert (found.rate, found.rate_at) == (there.rate, there.rate_at)
    world.tracks.clear()
    stay(world, 2.0)
    assert world.job.state.account.counterfactual is not None
    assert world.job.state.account.counterfactual.speed == found.speed


def test_queue_time_and_suspension_are_no_work() -> None:
    world = counting(progress={"totalSamples": 10**9})
    stay(world, 1.0)
    go(world, A10G, A100)
    done = progress_of(world.observed(), world.now).done
    assert done == pytest.approx(sum(world.counters.values()), rel=0.02)
    running = world.job.spec
    world.job = replace(world.job, spec=spec(suspend=True, progress={"totalSamples": 10**9}))
    stay(world, 0.1)
    done = progress_of(world.observed(), world.now).done
    stay(world, 10.0)
    assert progress_of(world.observed(), world.now).done == done
    world.job = replace(world.job, spec=running)
    stay(world, 1.0)
    assert progress_of(world.observed(), world.now).done == pytest.approx(sum(world.counters.values()), rel=0.02)


def test_a_move_counts_nothing_twice() -> None:
    """The status that says that the Revision is gone is written in the cycle that has still seen its count."""
    world = counting()
    stay(world, 1.0)
    go(world, A10G, A100)
    assert world.job.state.history[-1].outcome is Outcome.VERIFIED
    stay(world, 0.1)
    done = progress_of(world.observed(), world.now)
    assert done.done == pytest.approx(sum(world.counters.values()), rel=0.02)
    assert done.useful_seconds <= world.job.state.account.settled(world.now).chip_seconds


def test_progress_survives_the_operator() -> None:
    world = counting()
    stay(world, 1.0)
    world.job = world.job.with_state(
        replace(world.job.state, progress=progress_of(world.observed(), world.now))
    )  # as written with the status
    stay(world, 1.0)
    world.tracks.clear()
    world.live(60.0)
    assert progress_of(world.observed(), world.now).done == pytest.approx(sum(world.counters.values()), rel=1e-3)


@given(st.lists(EVENTS, max_size=50))
@example([("decide", A100), ("live", 1.0), ("decide", A100), ("fails", True), ("live", 1.0), ("live", 1.0)])
def test_the_books_are_those_of_the_world(events: list[tuple[str, object]]) -> None:
    """Whatever happens: what was spent is what the world has metered; what was saved is at most what the same work
    would have cost, and nothing while the job is where it began."""
    world = World.fresh()
    world.counts = True
    world.rates = {"a100": 1000.0, "a10g": 900.0}
    for event in events:
        happen(world, event)
        if event[0] == "live":
            world.cycle()
        if world.job.state.finished is not None:
            break
        account = world.job.state.account.settled(world.now)
        if event[0] == "live":
            assert account.spent == pytest.approx(world.paid, abs=1e-6)
        there = account.counterfactual
        if there is None and world.job.state.interruption is None:
            assert account.saving_per_hour == 0.0
        if there is not None and there.speed:
            cost = there.dollars / there.speed
            assert account.saved - there.saved_before <= cost + 1e-6
            assert account.saved - there.saved_before == pytest.approx(
                cost - (account.spent - there.spent_before), abs=1e-3
            )


@pytest.mark.parametrize("factor", [0.1, 0.5, 0.98, 1.02, 2.0, 10.0])
def test_goodput_does_not_depend_on_the_speed_of_the_job(factor: float) -> None:
    """All of its time is useful, before and after it has become slower or faster, however long ago that was written."""
    world = counting()
    stay(world, 2.0)
    written = world.job.state.progress
    for rate in (1000.0, 1000.0 * factor):
        world.rates["a100"] = rate
        stay(world, 1.0)
    job = world.observed()
    job = job.with_state(replace(job.state, progress=written))
    useful = progress_of(job, world.now).useful_seconds
    assert useful == pytest.approx(world.job.state.account.settled(world.now).chip_seconds, rel=0.02)


@pytest.mark.parametrize("crowded", [False, True])
def test_what_was_promised_tells_nothing_where_others_have_shown_that_the_pool_does_not_keep_it(crowded: bool) -> None:
    world = counting()
    world.rates = {"a100": 1000.0, "a10g": 810.0}
    go(world, A10G, A100)
    shown = decide(Action.KEEP, A10G, 810.0)
    shown.crowded = crowded
    for _ in range(240):
        world.live(60.0)
        world.cycle(shown)
    there = world.job.state.account.counterfactual
    assert there is not None and there.speed is not None
    promised, measured = 1000.0 / 900.0, 1000.0 / 810.0
    if crowded:
        assert there.speed == pytest.approx(measured, rel=0.02)
    else:
        assert promised < there.speed < 0.99 * measured
