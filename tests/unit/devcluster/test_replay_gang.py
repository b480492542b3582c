"""Gangs: counters increase at the speed of the table and the faults; saves on request."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcluster.replay.faults import Faults
from devcluster.replay.gang import BUCKETS, Conflict, Gang
from devcluster.replay.pod import SimulatedPod
from tests.unit.devcluster.replay_world import NOW, pod, table

NODES = {"a10g-0": "A10G-24GB"}


def gang_of(*pods: SimulatedPod, now: float = NOW, gang: Gang | None = None, **faults: Faults) -> Gang:
    """faults: by uid's last part, as p0=…"""
    gang = gang or Gang(pods[0].gang)
    by_uid = {each.uid: faults.get(f"p{each.uid[-1]}", Faults()) for each in pods}
    gang.update(now, {each.uid: each for each in pods}, by_uid, NODES, table().at)
    return gang


def rate(gang: Gang, start: float, seconds: float = 470.0) -> float:
    """Samples a second of the gang over ten whole waves of noise: eighty samples are one step of eight chips."""
    before, after = gang.odometer(start).steps, gang.odometer(start + seconds).steps
    return (after - before) * 10 * sum(each.chips for each in gang.pods.values()) / seconds


def test_speed_is_the_tables() -> None:
    assert rate(gang_of(pod(0, world=2), pod(1, world=2)), NOW) == pytest.approx(800.0)
    assert rate(gang_of(pod(0)), NOW) == pytest.approx(400.0)


def test_noise_is_at_most_one_per_cent() -> None:
    gang = gang_of(pod(0))
    for second in range(60):
        assert rate(gang, NOW + second, 1.0) == pytest.approx(400.0, rel=0.0101)


def test_warm_up_is_slow() -> None:
    gang = gang_of(pod(0, warm_up="20s"))
    assert gang.odometer(NOW + 20).steps == pytest.approx(20 * 10 * 0.25, rel=0.02)
    assert rate(gang, NOW + 20) == pytest.approx(400.0)


def test_no_pod_steps_until_all_run() -> None:
    gang = gang_of(pod(0, world=2), pod(1, world=2, started=None))
    assert gang.odometer(NOW + 100).steps == 0
    gang_of(pod(0, world=2), pod(1, world=2, started=NOW + 100), now=NOW + 100, gang=gang)
    assert gang.odometer(NOW + 110).steps == pytest.approx(100, rel=0.02)


def test_a_missing_pod_is_waited_for_even_before_it_exists() -> None:
    assert gang_of(pod(0, world=2)).odometer(NOW + 100).steps == 0


def test_a_fault_holds_from_now_on() -> None:
    gang = gang_of(pod(0))
    before = gang.odometer(NOW + 470).steps
    gang_of(pod(0), now=NOW + 470, gang=gang, p0=Faults(throughput=0.5))
    assert gang.odometer(NOW + 470).steps == before
    assert rate(gang, NOW + 470) == pytest.approx(200.0)


def test_the_slowest_pod_sets_the_speed() -> None:
    gang = gang_of(pod(0, world=2), pod(1, world=2), p1=Faults(throughput=0.25))
    assert rate(gang, NOW) == pytest.approx(200.0)


def test_a_slow_link_stretches_exposed_communication_alone() -> None:
    gang = gang_of(pod(0), p0=Faults(link=0.25))
    # 0.2 of the step becomes 0.8: the step takes 1.6 times as long, half of it exposed communication.
    assert rate(gang, NOW) == pytest.approx(400.0 / 1.6)
    assert gang.speed is not None
    assert gang.speed.exposed == pytest.approx(0.5)
    assert gang.speed.input_wait == pytest.approx(0.02 / 1.6)


def test_a_restarted_replay_finds_a_gang_where_it_would_be() -> None:
    """All counters follow from the pods' start, so scrapes before and after a restart agree."""
    watched = gang_of(pod(0))
    for second in range(0, 100, 7):
        watched.odometer(NOW + second)
    fresh = gang_of(pod(0), now=NOW + 100)
    assert fresh.odometer(NOW + 100).steps == pytest.approx(watched.odometer(NOW + 100).steps)


def test_a_new_pod_counts_from_its_own_start() -> None:
    gang = gang_of(pod(0, world=2), pod(1, world=2))
    gang_of(pod(0, world=2), pod(1, world=2, phase="Failed"), now=NOW + 50, gang=gang)
    stopped = gang.odometer(NOW + 80).steps
    assert stopped == gang.odometer(NOW + 60).steps > 0
    late = pod(2, world=2, started=NOW + 80)
    gang_of(pod(0, world=2), late, now=NOW + 80, gang=gang)
    assert gang.since_joining(late.uid, NOW + 80).seconds == 0
    assert gang.since_joining(late.uid, NOW + 90).steps == pytest.approx(100, rel=0.03)
    assert gang.since_joining("job-uid-0", NOW + 90).steps == pytest.approx(stopped + 100, rel=0.03)


@given(st.lists(st.tuples(st.floats(0.01, 40), st.sampled_from([0.2, 0.5, 1.0, 2.0])), min_size=1, max_size=30))
def test_counters_only_grow_and_agree(moves: list[tuple[float, float]]) -> None:
    """With any faults between scrapes no counter decreases, and the histogram counts every step once."""
    gang, now, before = gang_of(pod(0, warm_up="10s")), NOW, None
    for seconds, throughput in moves:
        now += seconds
        seen = gang.since_joining("job-uid-0", now)
        assert sum(seen.buckets) == int(seen.steps)
        assert seen.stepped <= seen.seconds * (1 + 1e-9)
        if before is not None:
            assert seen.steps >= before.steps
            assert seen.stepped >= before.stepped
            assert seen.joules >= before.joules
            assert all(new >= old for new, old in zip(seen.buckets, before.buckets, strict=True))
        before = seen
        gang_of(pod(0, warm_up="10s"), now=now, gang=gang, p0=Faults(throughput=throughput))


def test_steps_fall_into_the_bucket_of_their_duration() -> None:
    seen = gang_of(pod(0)).odometer(NOW + 100)  # ten steps a second
    assert BUCKETS[seen.buckets.index(max(seen.buckets))] in (0.1, 0.2)
    assert seen.stepped / int(seen.steps) == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"workload": "other"}, "no row for other on A10G-24GB"),
        ({"throughput": "fast"}, "throughput: 'fast' is not a number"),
        ({"warm_up": "soon"}, "warm-up: 'soon' is neither a duration"),
    ],
)
def test_a_job_that_cannot_be_replayed_is_a_problem_and_makes_no_steps(changes: dict[str, str], problem: str) -> None:
    gang = gang_of(pod(0, **changes))
    assert problem in str(gang.problem)
    assert gang.odometer(NOW + 100).steps == 0


# --- checkpoints -----------------------------------------------------------------------------------------------------


def test_a_requested_save_comes_after_its_delay() -> None:
    gang = gang_of(pod(0, checkpoint_delay="3s"))
    assert gang.ask_save("d-1", "Signal", NOW + 10) == "signalled"
    assert gang.saved_at(NOW + 12.9) is None
    assert gang.saved_at(NOW + 13) == NOW + 13
    assert gang.ask_save("d-1", "Signal", NOW + 14) == "saved"


def test_asking_again_is_the_same_request() -> None:
    gang = gang_of(pod(0, checkpoint_delay="3s"))
    gang.ask_save("d-1", "Signal", NOW + 10)
    gang.ask_save("d-1", "Signal", NOW + 12)
    assert gang.saved_at(NOW + 13) == NOW + 13
    assert gang.ask_save("d-2", "Signal", NOW + 20) == "signalled"
    assert gang.saved_at(NOW + 23) == NOW + 23


def test_never_is_never() -> None:
    gang = gang_of(pod(0, checkpoint_delay="never"))
    assert gang.ask_save("d-1", "Signal", NOW + 10) == "signalled"
    assert gang.saved_at(NOW + 100_000) is None


def test_periodic_saves_come_by_themselves_and_no_others() -> None:
    gang = gang_of(pod(0, checkpoint_every="1m"))
    assert gang.ask_save("d-1", "Periodic", NOW + 10) == "waiting"
    assert gang.saved_at(NOW + 59) is None
    assert gang.saved_at(NOW + 130) == NOW + 120
    assert gang.ask_save("d-1", "Periodic", NOW + 130) == "saved"


def test_a_program_that_does_not_run_or_does_not_save_cannot_be_asked() -> None:
    with pytest.raises(Conflict, match="no training process"):
        gang_of(pod(0, world=2)).ask_save("d-1", "Signal", NOW + 10)
    with pytest.raises(Conflict, match="does not checkpoint"):
        gang_of(pod(0)).ask_save("d-1", "None", NOW + 10)


@given(st.floats(0, 1e5))
def test_the_newest_save_is_never_in_the_future(after: float) -> None:
    gang = gang_of(pod(0, checkpoint_every="5m"))
    saved = gang.saved_at(NOW + after)
    assert saved is None or (saved <= NOW + after and math.isfinite(saved))
