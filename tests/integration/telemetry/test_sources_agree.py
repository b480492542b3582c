"""One scenario through a real Prometheus and through direct scraping: the same Samples, and nothing made up.

Each job shows one thing. Counters grow with the wall clock, so that both sources see the same rates.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from rightpool.profiles.sample import Field, RevisionKey, Sample
from rightpool.telemetry.prometheus import PrometheusSource
from rightpool.telemetry.scrape import ScrapeSource
from rightpool.telemetry.source import Target, TelemetryReading, TelemetrySource
from tests.integration.telemetry.conftest import Fleet
from tests.unit.telemetry.pages import Page, eventually

STARTED = time.time()
EARLY: list[dict[Field, float]] = []  # what Prometheus said of `steady` while its series were young


def healthy(rate: float, busy: tuple[float, float], steps: int, saved: float) -> Callable[[str], str]:
    """A pod with two chips: `rate` samples a second, 4 steps a second of 0.25 s."""

    def page(_: str) -> str:
        ran = time.time() - STARTED + 100
        lines = [
            f"rightpool_samples_total {rate * ran}",
            f"rightpool_step_seconds_sum {ran}",
            f"rightpool_step_seconds_count {4 * ran}",
            'rightpool_step_seconds_bucket{le="+Inf"} 12',
            f"rightpool_steps_total {steps}",
            f"rightpool_checkpoint_timestamp_seconds {saved}",
            "rightpool_checkpoint_duration_seconds 2.5",
            'rightpool_step_share_ratio{part="exposed_communication"} 0.2',
            'rightpool_step_share_ratio{part="input"} 0.1',
            'rightpool_step_share_ratio{part="compute"} 0.6',
            'rightpool_field_quality{field="rightpool_chip_memory_used_bytes",quality="derived"} 1',
            'rightpool_field_quality{field="rightpool_chip_busy_ratio",quality="measured"} 1',
            'rightpool_source_up{source="torch-steps"} 1',
            # What a page says of whose it is counts for nothing.
            'rightpool_chip_power_watts{chip="0",namespace="other",profiledjob="steady",pod="x"} 200',
        ]
        for chip, share in enumerate(busy):
            lines += [
                f'rightpool_chip_busy_ratio{{chip="{chip}"}} {share}',
                f'rightpool_chip_compute_active_ratio{{chip="{chip}"}} {share / 2}',
                f'rightpool_chip_memory_used_bytes{{chip="{chip}"}} {(chip + 1) * 1e9}',
                f'rightpool_chip_memory_total_bytes{{chip="{chip}"}} 24e9',
                f'rightpool_chip_throttle_ratio{{chip="{chip}",reason="power"}} {chip / 10}',
                f'rightpool_chip_throttle_ratio{{chip="{chip}",reason="thermal"}} 0.05',
            ]
        return "\n".join(lines) + "\n"

    return page


def slow() -> Page:
    page = Page(lambda _: "")
    page.answer = lambda _: (page.wait(5), "rightpool_steps_total 1\n")[1]
    return page


def restarting(_: str) -> str:
    """A counter that starts anew every 2.3 seconds, and grows by 100 a second."""
    return f"rightpool_samples_total {100 * ((time.time() - STARTED) % 2.3)}\n"


PODS: dict[str, list[Page | None]] = {
    "steady": [
        Page(healthy(100.0, (0.9, 0.5), 40, 1_700_000_000.0)),
        Page(healthy(50.0, (0.8, 0.6), 41, 1_700_000_060.0)),
    ],
    "partly": [Page(healthy(30.0, (0.4, 0.4), 7, 1.0)), Page(lambda _: "<html>\n"), slow(), None],
    "garbage": [Page(lambda _: "rightpool_steps_total twelve\n")],
    "absent": [None],
    "silent": [Page(lambda _: "")],
    "nonsense": [
        Page(
            lambda _: (
                'rightpool_chip_busy_ratio{chip="0"} NaN\n'
                'rightpool_chip_compute_active_ratio{chip="0"} +Inf\n'
                "rightpool_checkpoint_timestamp_seconds -7\n"
                'rightpool_chip_matrix_active_ratio{chip="0"} 42\n'
                "rightpool_steps_total 3\n"
            )
        )
    ],
    "idle": [
        Page(lambda _: "rightpool_samples_total 9\nrightpool_step_seconds_sum 1\nrightpool_step_seconds_count 4\n")
    ],
    "restarting": [Page(restarting)],
    "uneven": [
        Page(lambda _: 'rightpool_chip_busy_ratio{chip="0"} 0.2\nrightpool_chip_busy_ratio{chip="1"} 0.4\n'),
        Page(lambda _: 'rightpool_chip_busy_ratio{chip="0"} 0.9\n'),
    ],
}


def key(job: str) -> RevisionKey:
    return RevisionKey("ml", job, 2)


@pytest.fixture(scope="module")
def targets(fleet: Fleet) -> list[Target]:
    found = []
    for job, pages in PODS.items():
        pods = []
        for number, page in enumerate(pages):
            name = f"{job}-r2-{number}"
            labels = {"namespace": "ml", "profiledjob": job, "revision": "2", "pod": name}
            pods.append((name, fleet.pod(labels, page)))
        found.append(Target(key(job), tuple(pods), 1.0))
    fleet.start()
    return found


@pytest.fixture(scope="module")
def prometheus(fleet: Fleet, targets: list[Target]) -> Iterator[PrometheusSource]:
    source = PrometheusSource(fleet.url, scrape_interval=1.0)
    yield source
    source.close()


@pytest.fixture(scope="module")
def readings(fleet: Fleet, targets: list[Target], prometheus: PrometheusSource) -> dict[str, TelemetryReading]:
    """Each source's reading, once Prometheus has scraped for a while."""
    with ExitStack() as stack:
        direct = ScrapeSource(port=fleet.port, timeout=0.9)
        stack.callback(direct.close)

        def warm() -> bool:
            direct.read(targets, time.time())
            samples = prometheus.read(targets, time.time()).samples
            if key("steady") in samples:
                EARLY.append(dict(samples[key("steady")].values))
            jobs = [key(job) for job in ("steady", "partly", "idle", "restarting")]
            return all(job in samples and Field.SAMPLES_PER_SECOND in samples[job].values for job in jobs)

        eventually(warm)
        time.sleep(1)
        return {"prometheus": prometheus.read(targets, time.time()), "direct": direct.read(targets, time.time())}


@pytest.fixture(scope="module", params=["prometheus", "direct"])
def reading(request: pytest.FixtureRequest, readings: dict[str, TelemetryReading]) -> TelemetryReading:
    return readings[request.param]


def values(reading: TelemetryReading, job: str) -> dict[Field, float]:
    return dict(reading.samples[key(job)].values)


def test_every_field_of_a_healthy_job(reading: TelemetryReading) -> None:
    sample = reading.samples[key("steady")]
    assert sample.values == pytest.approx(
        {
            Field.SAMPLES_PER_SECOND: 150.0,
            Field.STEP_SECONDS: 0.25,
            Field.CHIP_BUSY: 0.7,
            Field.SLOWEST_CHIP_BUSY: 0.5,
            Field.COMPUTE_ACTIVE: 0.35,
            Field.MEMORY_USED: 2e9,
            Field.MEMORY_TOTAL: 24e9,
            Field.POWER: 200.0,
            Field.THROTTLE: 0.1,
            Field.EXPOSED_COMMUNICATION: 0.2,
            Field.INPUT_WAIT: 0.1,
            Field.STEPS: 40.0,
            Field.CHECKPOINT_TIMESTAMP: 1_700_000_060.0,
            Field.CHECKPOINT_SECONDS: 2.5,
            Field.PODS: 2.0,
        },
        rel=0.02,
    )
    assert sample.derived == {Field.MEMORY_USED}
    assert abs(time.time() - sample.at) < 30


def test_pods_that_can_not_be_read_are_left_out(reading: TelemetryReading) -> None:
    found = values(reading, "partly")
    assert found[Field.PODS] == 1
    assert found[Field.SAMPLES_PER_SECOND] == pytest.approx(30.0, rel=0.02)
    assert found[Field.CHIP_BUSY] == pytest.approx(0.4)


@pytest.mark.parametrize("job", ["garbage", "absent"])
def test_a_job_of_which_nothing_can_be_read_is_absent(reading: TelemetryReading, job: str) -> None:
    assert key(job) not in reading.samples


def test_a_sidecar_with_nothing_to_say_has_answered(reading: TelemetryReading) -> None:
    assert values(reading, "silent") == {Field.PODS: 1}


def test_nonsense_is_missing(reading: TelemetryReading) -> None:
    assert values(reading, "nonsense") == {Field.PODS: 1, Field.STEPS: 3}


def test_zero_is_said_only_by_a_counter_that_stands_still(reading: TelemetryReading) -> None:
    assert values(reading, "idle") == {Field.PODS: 1, Field.SAMPLES_PER_SECOND: 0}


def test_each_pod_counts_as_much_as_any_other(reading: TelemetryReading) -> None:
    found = values(reading, "uneven")
    assert found == pytest.approx({Field.PODS: 2, Field.CHIP_BUSY: 0.6, Field.SLOWEST_CHIP_BUSY: 0.2})


def test_restarts_never_give_a_negative_or_absurd_rate(reading: TelemetryReading) -> None:
    assert 0 <= values(reading, "restarting")[Field.SAMPLES_PER_SECOND] < 150


def test_young_series_give_no_throughput_rather_than_too_low_a_one(readings: dict[str, TelemetryReading]) -> None:
    assert Field.SAMPLES_PER_SECOND not in EARLY[0]
    for found in EARLY:
        assert found.get(Field.SAMPLES_PER_SECOND, 150.0) == pytest.approx(150.0, rel=0.05)


def test_both_sources_give_the_same_fields(readings: dict[str, TelemetryReading]) -> None:
    one, other = (readings[source].samples for source in ("prometheus", "direct"))
    assert one.keys() == other.keys()
    for job in one.keys() - {key("restarting")}:
        assert one[job].values == pytest.approx(other[job].values, rel=0.05)
        assert one[job].derived == other[job].derived


def test_direct_scraping_names_the_pods_that_failed(readings: dict[str, TelemetryReading]) -> None:
    pods = {failure.split(":")[0].removeprefix("pod ml/") for failure in readings["direct"].failures}
    assert pods == {"partly-r2-1", "partly-r2-2", "partly-r2-3", "garbage-r2-0", "absent-r2-0"}
    assert readings["prometheus"].failures == ()


def sample_of(source: TelemetrySource, targets: list[Target], job: str) -> Sample | None:
    return source.read(targets, time.time()).samples.get(key(job))


def test_a_pod_that_starts_to_fail_is_missing_and_never_zero(
    fleet: Fleet, targets: list[Target], prometheus: PrometheusSource, readings: dict[str, TelemetryReading]
) -> None:
    """Rates outlive their series by the whole range, so this is where old values would show."""
    page = PODS["steady"][1]
    assert page is not None
    before, page.answer = page.answer, lambda _: (500, b"")
    try:
        eventually(
            lambda: (found := sample_of(prometheus, targets, "steady")) is not None and found.values[Field.PODS] == 1
        )
        sample = sample_of(prometheus, targets, "steady")
        assert sample is not None
        assert sample.values[Field.SAMPLES_PER_SECOND] == pytest.approx(100.0, rel=0.05)
        assert sample.values[Field.STEPS] == 40
    finally:
        page.answer = before


def test_a_pod_that_left_is_forgotten_at_once(
    fleet: Fleet, targets: list[Target], prometheus: PrometheusSource, readings: dict[str, TelemetryReading]
) -> None:
    [(_, address)] = next(target.pods for target in targets if target.key == key("idle"))
    fleet.remove(address)
    eventually(lambda: sample_of(prometheus, targets, "idle") is None)


def test_what_prometheus_no_longer_scrapes_grows_old_and_is_missing(
    fleet: Fleet, targets: list[Target], prometheus: PrometheusSource, readings: dict[str, TelemetryReading]
) -> None:
    """After a restart Prometheus repeats the last values of lost targets for five minutes. `at` tells how old they
    are, and after the horizon they are gone. Changes the fleet: the last test of this module."""
    eventually(lambda: sample_of(prometheus, targets, "steady") is not None)
    fleet.stop()
    stopped = time.time()
    fleet.remove(*(address for target in targets for _, address in target.pods))
    fleet.start()
    sample = sample_of(prometheus, targets, "steady")
    assert sample is None or sample.at <= stopped
    eventually(lambda: sample_of(prometheus, targets, "steady") is None)
    repeated = prometheus._prometheus.custom_query('rightpool_steps_total{profiledjob="steady"}')
    assert repeated, "Prometheus itself still shows the old values"
    eventually(lambda: prometheus.read(targets, time.time()) == TelemetryReading())
    assert math.isclose(float(repeated[0]["value"][1]), 40, abs_tol=2)
