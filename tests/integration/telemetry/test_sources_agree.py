"""One scenario through a real Prometheus and through direct scraping: the same Samples, and nothing made up.

Each job shows one thing. Rates are exact, however busy the machine is: for Prometheus, counters carry the moment that
they are of; what is read directly goes by a clock that the test sets.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from rightpool.api.traits import ModelTraits, Parallelism
from rightpool.profiles.sample import Field, RevisionKey, Sample
from rightpool.telemetry.prometheus import PrometheusReader
from rightpool.telemetry.reader import Target, TelemetryReader, TelemetryReading
from rightpool.telemetry.scrape import ScrapeReader
from rightpool.telemetry.sources.rows import rows_of
from tests.integration.telemetry.conftest import Fleet, read_of
from tests.patience import eventually
from tests.unit.telemetry.pages import Page, free_port, serving

Clock = Callable[[], float]
Pod = Callable[[Clock], Page]

STARTED = time.time()
EARLY: list[dict[Field, float]] = []  # readings of `steady` while its series were young


def healthy(rate: float, busy: tuple[float, float], steps: int, saved: float) -> Pod:
    """A pod with two chips: `rate` samples a second, 4 steps a second of 0.25 s."""

    def page(clock: Clock) -> str:
        at = int(1000 * clock())
        ran = at / 1000 - STARTED + 100
        lines = [
            f"rightpool_samples_total {rate * ran} {at}",
            f"rightpool_step_seconds_sum {ran} {at}",
            f"rightpool_step_seconds_count {4 * ran} {at}",
            'rightpool_step_seconds_bucket{le="+Inf"} 12',
            f"rightpool_steps_total {steps}",
            f"rightpool_checkpoint_timestamp_seconds {saved}",
            "rightpool_checkpoint_duration_seconds 2.5",
            'rightpool_step_share_ratio{part="exposed_communication",rank="0"} 0.1',
            'rightpool_step_share_ratio{part="exposed_communication",rank="1"} 0.3',
            "rightpool_model_parameters 1000",
            "rightpool_model_parameter_bytes 4000",
            "rightpool_model_bytes 5000",
            "rightpool_step_samples 8",
            "rightpool_step_flops 3e+12",
            'rightpool_model_info{precision="bf16",data="4"} 1',
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
                f'rightpool_link_bytes_total{{chip="{chip}",link="nvlink",direction="tx"}} {1e9 * chip * ran} {at}',
                f'rightpool_link_bytes_total{{chip="{chip}",link="pcie",direction="rx"}} {1e8 * ran} {at}',
                f'rightpool_chip_pipe_active_ratio{{chip="{chip}",pipe="fp32"}} {0.2 + 0.2 * chip}',
                f'rightpool_chip_pipe_active_ratio{{chip="{chip}",pipe="tensor_half"}} 0.9',
                f'rightpool_chip_xid{{chip="{chip}"}} 0',
                f'rightpool_chip_errors_total{{chip="{chip}",kind="ecc_uncorrected"}} {chip}',
                f'rightpool_chip_memory_used_bytes{{chip="{chip}"}} {(chip + 1) * 1e9}',
                f'rightpool_chip_memory_total_bytes{{chip="{chip}"}} 24e9',
                f'rightpool_chip_throttle_ratio{{chip="{chip}",reason="hardware_thermal"}} {chip / 10}',
                f'rightpool_chip_throttle_ratio{{chip="{chip}",reason="power_cap"}} 0.05',
            ]
        return "\n".join(lines) + "\n"

    return lambda clock: Page(lambda _: page(clock))


def slow(_: Clock) -> Page:
    page = Page(lambda _: "")
    page.answer = lambda _: (page.wait(120), "rightpool_steps_total 1\n")[1]
    return page


def restarting(clock: Clock) -> Page:
    """A counter that starts anew every 2.3 seconds, and grows by 100 a second."""
    return Page(lambda _: f"rightpool_samples_total {100 * ((clock() - STARTED) % 2.3)}\n")


def says(text: str) -> Pod:
    """A pod with the same page at any time."""
    return lambda _: Page(lambda _: text)


PODS: dict[str, list[Pod | None]] = {
    "steady": [
        healthy(100.0, (0.9, 0.5), 40, 1_700_000_000.0),
        healthy(50.0, (0.8, 0.6), 41, 1_700_000_060.0),
    ],
    "partly": [healthy(30.0, (0.4, 0.4), 7, 1.0), says("<html>\n"), slow, None],
    "garbage": [says("rightpool_steps_total twelve\n")],
    "absent": [None],
    "silent": [says("")],
    "nonsense": [
        says(
            'rightpool_chip_busy_ratio{chip="0"} NaN\n'
            'rightpool_chip_compute_active_ratio{chip="0"} +Inf\n'
            "rightpool_checkpoint_timestamp_seconds -7\n"
            'rightpool_chip_matrix_active_ratio{chip="0"} 42\n'
            "rightpool_steps_total 3\n"
        )
    ],
    "idle": [says("rightpool_samples_total 9\nrightpool_step_seconds_sum 1\nrightpool_step_seconds_count 4\n")],
    "restarting": [restarting],
    "uncounted": [healthy(30.0, (0.4, 0.4), 7, 1.0), says("rightpool_steps_total 7\n")],
    "hidden": [
        healthy(30.0, (0.4, 0.4), 7, 1.0),
        says('rightpool_field_quality{field="rightpool_samples_total",quality="missing"} 1\n'),
    ],
    "served": [healthy(30.0, (0.4, 0.4), 7, 1.0), says('rightpool_chip_busy_ratio{chip="0"} 0.4\n')],
    "uneven": [
        says('rightpool_chip_busy_ratio{chip="0"} 0.2\nrightpool_chip_busy_ratio{chip="1"} 0.4\n'),
        says('rightpool_chip_busy_ratio{chip="0"} 0.9\n'),
    ],
}


FAILING = {"partly-r2-1", "partly-r2-2", "partly-r2-3", "garbage-r2-0", "absent-r2-0"}


def failed(reading: TelemetryReading) -> set[str]:
    return {failure.split(":")[0].removeprefix("pod ml/") for failure in reading.failures}


def key(job: str) -> RevisionKey:
    return RevisionKey("ml", job, 2)


@pytest.fixture(scope="module")
def pages() -> dict[str, list[Page | None]]:
    """The pages of each job that Prometheus scrapes."""
    return {job: [None if pod is None else pod(time.time) for pod in pods] for job, pods in PODS.items()}


@pytest.fixture(scope="module")
def targets(fleet: Fleet, pages: dict[str, list[Page | None]]) -> list[Target]:
    found = []
    for job, own in pages.items():
        pods = []
        for number, page in enumerate(own):
            name = f"{job}-r2-{number}"
            labels = {"namespace": "ml", "profiledjob": job, "revision": "2", "pod": name}
            pods.append((name, fleet.pod(labels, page)))
        found.append(Target(key(job), tuple(pods), 1.0))
    fleet.start()
    return found


@pytest.fixture(scope="module")
def prometheus(fleet: Fleet, targets: list[Target]) -> Iterator[PrometheusReader]:
    reader = PrometheusReader(fleet.url, scrape_interval=2.5)
    yield reader
    reader.close()


def read_directly(targets: list[Target]) -> TelemetryReading:
    """The second of two readings, of the same pods at the same addresses, on a port of their own."""
    now = STARTED
    port = free_port()
    with ExitStack() as stack:
        for target in targets:
            for pod, (_, address) in zip(PODS[target.key.job], target.pods, strict=True):
                if pod is not None:
                    stack.enter_context(serving(pod(lambda: now), address, port))
        reader = ScrapeReader(port=port, timeout=10.0, budget=120.0, clock=lambda: now)
        stack.callback(reader.close)
        reader.read(targets, time.time())
        now += 5.0
        return reader.read(targets, time.time())


@pytest.fixture(scope="module")
def readings(targets: list[Target], prometheus: PrometheusReader) -> dict[str, TelemetryReading]:
    """Each reader's, of Prometheus once it has scraped for a while, each pod with its last scrape."""

    def warm() -> TelemetryReading | None:
        reading = prometheus.read(targets, time.time())
        samples = reading.samples
        if key("steady") in samples:
            EARLY.append(dict(samples[key("steady")].values))
        jobs = [key(job) for job in ("steady", "partly", "idle", "restarting", "served")]
        stepping = [key(job) for job in ("uncounted", "hidden")]
        complete = all(
            samples[job].values[Field.PODS] == len([page for page in PODS[job.job] if page is not None])
            for job in samples.keys() - {key("partly")}
        )
        rated = all(job in samples and Field.SAMPLES_PER_SECOND in samples[job].values for job in jobs)
        stepped = all(job in samples and Field.STEP_SECONDS in samples[job].values for job in stepping)
        return reading if complete and rated and stepped and not reading.failures else None

    read = eventually(warm, "Prometheus has scraped all of them")
    assert read is not None

    def direct() -> TelemetryReading | None:
        """Where the machine is busy, others may take too long as well."""
        reading = read_directly(targets)
        return reading if failed(reading) == FAILING else None

    scraped = eventually(direct, "only those fail that do")
    assert scraped is not None
    return {"prometheus": read, "direct": scraped}


@pytest.fixture(scope="module", params=["prometheus", "direct"])
def reading(request: pytest.FixtureRequest, readings: dict[str, TelemetryReading]) -> TelemetryReading:
    return readings[request.param]


def values(reading: TelemetryReading, job: str) -> dict[Field, float]:
    return dict(reading.samples[key(job)].values)


def test_every_field_of_a_healthy_job(reading: TelemetryReading) -> None:
    sample = reading.samples[key("steady")]
    assert sample.values[Field.SAMPLES] > 0
    assert {field: value for field, value in sample.values.items() if field is not Field.SAMPLES} == pytest.approx(
        {
            Field.SAMPLES_PER_SECOND: 150.0,
            Field.STEP_SECONDS: 0.25,
            Field.CHIP_BUSY: 0.7,
            Field.SLOWEST_CHIP_BUSY: 0.5,
            Field.COMPUTE_ACTIVE: 0.35,
            Field.MEMORY_USED: 2e9,
            Field.MEMORY_TOTAL: 24e9,
            Field.POWER: 200.0,
            Field.MOST_COMPUTE_ACTIVE: 0.45,
            Field.LEAST_COMPUTE_ACTIVE: 0.25,
            Field.FP32_ACTIVE: 0.3,
            Field.UNCORRECTED_ERRORS: 1.0,
            Field.PEER_SENT: 5e8,
            Field.PCIE_RECEIVED: 1e8,
            Field.LEAST_EXPOSED: 0.1,
            Field.LEAST_INPUT_WAIT: 0.1,
            Field.THROTTLE: 0.1,
            Field.THERMAL_THROTTLE: 0.1,
            Field.POWER_CAPPED: 0.05,
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
    assert sample.traits == ModelTraits("bf16", None, 1000, 4000, 5000, 16, 6e12, Parallelism(data=4))
    assert STARTED < sample.at < time.time()


def test_pods_that_can_not_be_read_are_left_out(reading: TelemetryReading) -> None:
    found = values(reading, "partly")
    assert found[Field.PODS] == 1
    assert found[Field.SAMPLES_PER_SECOND] == pytest.approx(30.0, rel=0.02)
    assert found[Field.CHIP_BUSY] == pytest.approx(0.4)


@pytest.mark.parametrize("job", ["garbage", "absent"])
def test_a_job_of_which_nothing_can_be_read_is_absent(reading: TelemetryReading, job: str) -> None:
    assert key(job) not in reading.samples


def test_a_sidecar_without_measurements_counts_as_read(reading: TelemetryReading) -> None:
    assert values(reading, "silent") == {Field.PODS: 1}


def test_invalid_values_are_missing(reading: TelemetryReading) -> None:
    assert values(reading, "nonsense") == {Field.PODS: 1, Field.STEPS: 3}


def test_only_a_constant_counter_gives_zero(reading: TelemetryReading) -> None:
    assert values(reading, "idle") == {Field.PODS: 1, Field.SAMPLES_PER_SECOND: 0, Field.SAMPLES: 9}


def test_all_pods_have_equal_weight(reading: TelemetryReading) -> None:
    found = values(reading, "uneven")
    assert found == pytest.approx({Field.PODS: 2, Field.CHIP_BUSY: 0.6, Field.SLOWEST_CHIP_BUSY: 0.2})


@pytest.mark.parametrize("job", ["uncounted", "hidden"])
def test_samples_of_some_of_the_pods_that_step_are_not_the_jobs(reading: TelemetryReading, job: str) -> None:
    sample = reading.samples[key(job)]
    assert sample.values[Field.PODS] == 2 and sample.values[Field.STEP_SECONDS] == pytest.approx(0.25, rel=0.02)
    assert not {Field.SAMPLES_PER_SECOND, Field.SAMPLES} & sample.values.keys()
    assert sample.traits is not None and (sample.traits.parameters, sample.traits.batch) == (1000, None)


def test_a_pod_that_makes_no_steps_has_no_samples_to_count(reading: TelemetryReading) -> None:
    sample = reading.samples[key("served")]
    assert sample.values[Field.SAMPLES_PER_SECOND] == pytest.approx(30.0, rel=0.02)
    assert Field.SAMPLES not in sample.values
    assert sample.traits is not None and sample.traits.batch == 8


def test_restarts_never_give_a_negative_or_absurd_rate(reading: TelemetryReading) -> None:
    assert 0 <= values(reading, "restarting")[Field.SAMPLES_PER_SECOND] < 150


@pytest.mark.parametrize(
    ("field", "rate"), [(Field.SAMPLES_PER_SECOND, 150.0), (Field.PEER_SENT, 5e8), (Field.PCIE_RECEIVED, 1e8)]
)
def test_young_series_give_no_rate_rather_than_too_low_a_one(
    fleet: Fleet, prometheus: PrometheusReader, readings: dict[str, TelemetryReading], field: Field, rate: float
) -> None:
    for found in EARLY:
        assert found.get(field, rate) == pytest.approx(rate, rel=0.05)
    # Where the machine was busy, the first reading came late: another pod, until one is read while it is young.
    assert field not in EARLY[0] or any(field not in young(fleet, prometheus) for _ in range(20))


def young(fleet: Fleet, prometheus: PrometheusReader) -> dict[Field, float]:
    """The first reading of a new pod."""
    job = f"young-{uuid.uuid4().hex[:8]}"
    labels = {"namespace": "ml", "profiledjob": job, "revision": "2", "pod": job}
    address = fleet.pod(labels, healthy(100.0, (0.9, 0.5), 40, 1.0)(time.time))
    fleet.publish()
    target = Target(key(job), ((job, address),), 1.0)
    return dict(read_of(prometheus, [target], target.key).samples[target.key].values)


def test_both_sources_give_the_same_fields(readings: dict[str, TelemetryReading]) -> None:
    one, other = (readings[source].samples for source in ("prometheus", "direct"))
    assert one.keys() == other.keys()
    for job in one.keys() - {key("restarting")}:
        assert one[job].values.keys() == other[job].values.keys()
        for field in one[job].values.keys() - {Field.SAMPLES}:  # it has grown from one reading to the next
            assert one[job].values[field] == pytest.approx(other[job].values[field], rel=0.05), field
        assert one[job].derived == other[job].derived


def test_direct_scraping_names_the_pods_that_failed(readings: dict[str, TelemetryReading]) -> None:
    assert failed(readings["direct"]) == FAILING
    assert readings["prometheus"].failures == ()


def sample_of(reader: TelemetryReader, targets: list[Target], job: str) -> Sample | None:
    return reader.read(targets, time.time()).samples.get(key(job))


def test_a_pod_that_starts_to_fail_is_missing_and_never_zero(
    pages: dict[str, list[Page | None]],
    targets: list[Target],
    prometheus: PrometheusReader,
    readings: dict[str, TelemetryReading],
) -> None:
    """Rates outlive their series by the whole range, so this is where old values would show."""
    page = pages["steady"][1]
    assert page is not None
    before, page.answer = page.answer, lambda _: (500, b"")
    try:

        def alone() -> Sample | None:
            """Of the pod that goes on."""
            found = sample_of(prometheus, targets, "steady")
            return found if found is not None and found.values[Field.PODS] == 1 else None

        sample = eventually(alone, "one of two pods is read")
        assert sample is not None
        assert sample.values[Field.SAMPLES_PER_SECOND] == pytest.approx(100.0, rel=0.05)
        assert sample.values[Field.STEPS] == 40
    finally:
        page.answer = before


def test_a_deleted_pod_is_dropped_immediately(
    fleet: Fleet, targets: list[Target], prometheus: PrometheusReader, readings: dict[str, TelemetryReading]
) -> None:
    [(_, address)] = next(target.pods for target in targets if target.key == key("idle"))
    fleet.remove(address)
    eventually(lambda: sample_of(prometheus, targets, "idle") is None)


def test_targets_that_are_no_longer_scraped_become_stale_and_missing(
    fleet: Fleet, targets: list[Target], prometheus: PrometheusReader, readings: dict[str, TelemetryReading]
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
    repeated = prometheus._prometheus._prometheus.custom_query('rightpool_steps_total{profiledjob="steady"}')
    assert repeated, "Prometheus itself still shows the old values"
    eventually(lambda: prometheus.read(targets, time.time()) == TelemetryReading())
    assert [value for _, value in rows_of(repeated)] == [pytest.approx(40, abs=2)] * len(repeated)
