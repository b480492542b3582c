"""Interruptions of spot capacity: counted once, over the time in which chips were held, by namespace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest

from rightpool.api.account import Account
from rightpool.api.counterfactual import Counterfactual
from rightpool.api.interruption import FAILED_PROGRAM, TAKEN, Interruption
from rightpool.api.placement import CapacityType, Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.recovery import Recovery
from rightpool.api.revision import Revision
from rightpool.api.spot_use import SpotUse
from rightpool.hardware.spot_rate import PRIOR_DAYS, interruptions_a_day
from rightpool.planning.books.accounting import accounted
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.revision_state import Crash, RevisionState
from rightpool.planning.jobs.tenant import hash_of, tenant_of
from rightpool.planning.judge.spot_count import SpotCount
from rightpool.planning.work.outlook import interruption_seconds
from rightpool.planning.work.training import Training
from rightpool.profiles.sample import Field, Sample
from rightpool.profiles.track import Track
from tests.unit.planning.jobs import NOW, changed, running, spec

SPOT = Placement("a100", 4, 1, CapacityType.SPOT)
TEAM = hash_of("team")
KEPT: Mapping[str, tuple[SpotUse, ...]] = {"a100": ()}


def on_spot(name: str = "job", namespace: str = "team", *, interrupted: bool = False, running_pods: int = 1) -> Job:
    """A job of one pod."""
    job = changed(
        running(made=spec(placement={"capacity": "Any"})),
        revision=Revision(1, SPOT, "h", created_at=NOW, cost_per_hour=8.0, since=NOW),
        interruption=Interruption(TAKEN, NOW) if interrupted else None,
        revisions={1: RevisionState(1, exists=True, active=1, running=running_pods)},
    )
    return replace(job, key=JobKey(namespace, name))


def test_an_interruption_counts_once_however_often_it_is_looked_at() -> None:
    calm, hit = on_spot(), on_spot(interrupted=True)
    count = SpotCount()
    for minute, job in enumerate((calm, hit, hit, hit, calm, hit)):
        count = count.after([job], KEPT, NOW + 60.0 * minute)
    (use,) = count.uses["a100"].values()
    assert use.tenant == TEAM == tenant_of(calm)
    assert use.interruptions == pytest.approx(2.0, rel=1e-3)
    assert use.hours == use.span == pytest.approx(5 / 60, rel=1e-3)


def test_an_operator_that_is_started_anew_goes_on_from_what_the_pool_has_kept() -> None:
    known = {"a100": (SpotUse(TEAM, NOW, 3.0, 50.0, 25.0),)}
    count = SpotCount().after([on_spot(interrupted=True)], known, NOW).after([on_spot()], known, NOW + 60.0)
    (use,) = count.uses["a100"].values()
    assert use.interruptions == pytest.approx(3.0, rel=1e-3), "the one that was under way was counted before"
    assert use.hours == pytest.approx(50.0 + 1 / 60, rel=1e-3)


def test_a_namespace_that_another_operator_counts_stays_as_that_one_says() -> None:
    theirs = SpotUse(hash_of("theirs"), NOW + 30.0, 9.0, 90.0, 30.0)
    count = SpotCount().after([on_spot()], {"a100": (replace(theirs, as_of=NOW, hours=80.0),)}, NOW)
    count = count.after([on_spot()], {"a100": (theirs,)}, NOW + 60.0)
    assert count.uses["a100"][theirs.tenant] == theirs


def test_a_pool_is_written_when_its_rate_is_another_one_and_no_sooner_than_after_ten_minutes() -> None:
    count = SpotCount().after([on_spot()], KEPT, NOW)
    kept, writes = KEPT, []
    for minute in range(1, 6 * 60):
        count = count.after([on_spot()], kept, NOW + 60.0 * minute)
        found = count.to_keep(kept)
        if found != kept:
            writes.append(minute)
            kept = found
    assert 1 <= len(writes) <= 12
    assert all(later - earlier >= 10 for earlier, later in pairwise(writes))


def test_a_namespace_is_one_witness_to_others_and_counts_in_full_for_itself() -> None:
    many = SpotUse(TEAM, NOW, interruptions=800.0, hours=2400.0, span=24.0)
    own, other = (interruptions_a_day([many], 1.0, tenant, NOW) for tenant in (TEAM, "other"))
    assert own == pytest.approx((PRIOR_DAYS + 800.0) / (PRIOR_DAYS + 100.0))
    assert other == pytest.approx((PRIOR_DAYS + 8.0) / (PRIOR_DAYS + 1.0))
    assert interruptions_a_day([], 3.0, TEAM, NOW) == 3.0
    assert interruptions_a_day([many], 1.0, TEAM, NOW + 365 * 86_400.0) == pytest.approx(1.0, rel=0.1), "forgotten"


def test_pods_that_are_taken_away_interrupt_the_job_until_others_have_caught_up() -> None:
    """For three quarters of an hour; then it did again what no save held."""
    job, track = on_spot(), Track()
    for second in range(0, 700, 100):
        values = {Field.SAMPLES: float(second), Field.PODS: 1.0, Field.CHECKPOINT_TIMESTAMP: NOW + 300.0}
        track.add(Sample(NOW + second, values), 1)
    at = NOW + 700.0
    gone = RevisionState(1, exists=True, active=1, running=0, on_nodes=1, disrupted_at=at)
    job = accounted(changed(job, track=track, revisions={1: gone}), None, PlacementPolicySpec(), at)
    assert job.state.interruption is not None and job.state.interruption.id == TAKEN
    assert job.state.interruption.repeats == 300
    back = replace(gone, running=1)
    for second in range(2700, 3600, 100):
        track.add(Sample(at + second, {Field.SAMPLES: float(second - 2700), Field.PODS: 1.0}), 1)
        job = accounted(changed(job, track=track, revisions={1: back}), None, PlacementPolicySpec(), at + second)
        if job.state.interruption is None:
            break
    assert job.state.recovery == Recovery(at, pytest.approx(3000.0, abs=1.0))  # type: ignore[arg-type]
    assert interruption_seconds(job) == Training().restart_seconds(job) == pytest.approx(3000.0, abs=1.0)
    later = changed(job, revisions={1: replace(back, running=0)})
    assert accounted(later, None, PlacementPolicySpec(), at + 3700.0).state.interruption is None, (
        "that was another reason"
    )


def test_what_is_paid_without_work_reduces_saved_where_a_job_was_moved_to_spot() -> None:
    there = Counterfactual(Placement("a100", 4, 1), 12.0, since=NOW, speed=1.0, predicted=1.0)
    job = on_spot()
    job = changed(job, account=replace(job.state.account, counterfactual=there))
    job = accounted(job, None, PlacementPolicySpec(), NOW)
    assert job.state.account.saving_per_hour == pytest.approx(4.0)
    gone = RevisionState(1, exists=True, active=1, running=0, on_nodes=1, disrupted_at=NOW + 60.0)
    job = accounted(changed(job, revisions={1: gone}), None, PlacementPolicySpec(), NOW + 60.0)
    assert job.state.account.saving_per_hour == pytest.approx(-8.0)


def test_a_program_that_fails_and_starts_again_saves_nothing_until_it_has_caught_up() -> None:
    """A quarter of an hour at $10 an hour where the work would have cost $12: of that it works for twelve minutes and a
    half before it fails, and does nothing new after that. Nothing is saved by the hour for the rest."""
    there = Counterfactual(Placement("a100", 4, 1), 12.0, since=NOW, speed=1.0, predicted=1.0)
    at_work = RevisionState(1, exists=True, active=1, running=1)
    job, track = on_spot(), Track()
    assert job.state.revision is not None
    revision = replace(job.state.revision, cost_per_hour=10.0)
    job = changed(job, revision=revision, account=Account(counterfactual=there), track=track, revisions={1: at_work})
    for second in range(0, 920, 10):
        count, failed = float(second), second >= 750
        if failed:  # it loads again, and has begun with what no save held
            crash = Crash(1, 6, "main", 1, "Error", NOW + 745.0)
            job = changed(job, revisions={1: replace(at_work, crash=crash)})
            count = max(0.0, float(second) - 850.0)
        if not 750 <= second < 850:
            values = {Field.SAMPLES: count, Field.PODS: 1.0, Field.CHECKPOINT_TIMESTAMP: NOW + 600.0}
            track.add(Sample(NOW + second, values), 1)
        job = accounted(job, None, PlacementPolicySpec(), NOW + second)
    assert job.state.interruption is not None and job.state.interruption.id == FAILED_PROGRAM
    truth = (12.0 * 750.0 - 10.0 * 910.0) / 3600.0
    assert truth < 0.0
    assert job.state.account.settled(NOW + 910.0).saved == pytest.approx(truth, abs=0.03)
