"""Direct scraping: rates from two readings, gaps, restarts, and pods that answer late or not at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from rightpool.api.traits import ModelTraits, Parallelism
from rightpool.profiles.sample import Field, RevisionKey
from rightpool.telemetry.reader import Target, TelemetryReading
from rightpool.telemetry.scrape import ScrapeReader
from tests.patience import PATIENCE, eventually
from tests.unit.telemetry.pages import Page, free_port, serving

KEY = RevisionKey("ml", "bert", 2)


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Fleet:
    """Pods 127.0.0.2, .3, … of one Revision, and a source that reads them."""

    def __init__(self, stack: ExitStack, timeout: float = PATIENCE, budget: float = PATIENCE) -> None:
        self.clock = Clock()
        self.port = free_port()
        self.stack = stack
        self.source = ScrapeReader(port=self.port, timeout=timeout, budget=budget, clock=self.clock)
        stack.callback(self.source.close)
        self.pods: list[tuple[str, str]] = []

    def pod(self, text: str | None) -> Page:
        page = Page(lambda _: text or "")
        address = f"127.0.0.{len(self.pods) + 2}"
        self.pods.append((f"pod-{len(self.pods)}", address))
        if text is not None:
            self.stack.enter_context(serving(page, address, self.port))
        return page

    def read(self) -> TelemetryReading:
        return self.source.read([Target(KEY, tuple(self.pods), interval=10.0)], now=self.clock.now + 10_000)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield Fleet(stack)


def say(page: Page, text: str) -> None:
    page.answer = lambda _: text


def test_gauges_at_once_and_rates_from_the_second_reading(fleet: Fleet) -> None:
    pages = [
        fleet.pod(
            'rightpool_samples_total 100\nrightpool_chip_busy_ratio{chip="0"} 0.25\n'
            "rightpool_step_seconds_sum 10\nrightpool_step_seconds_count 20\n"
        )
        for _ in range(2)
    ]
    first = fleet.read().samples[KEY]
    assert first.values == {Field.CHIP_BUSY: 0.25, Field.SLOWEST_CHIP_BUSY: 0.25, Field.PODS: 2, Field.SAMPLES: 200}
    assert first.at == 11_000.0
    fleet.clock.now += 10
    for page, samples in zip(pages, (600, 1100), strict=True):
        say(
            page,
            f"rightpool_samples_total {samples}\nrightpool_step_seconds_sum 15\nrightpool_step_seconds_count 40\n",
        )
    second = fleet.read().samples[KEY]
    assert second.values == {
        Field.SAMPLES_PER_SECOND: 150.0,
        Field.STEP_SECONDS: 0.25,
        Field.PODS: 2,
        Field.SAMPLES: 1700,
    }
    assert second.at == 11_010.0


def test_jobs_that_are_read_in_turn_have_rates_too(fleet: Fleet) -> None:
    page, other = fleet.pod("rightpool_samples_total 100\n"), fleet.pod("rightpool_samples_total 100\n")
    mine, theirs = (Target(RevisionKey("ml", pod, 1), ((pod, address),), interval=10.0) for pod, address in fleet.pods)
    for samples in (200, 300):
        for target in (mine, theirs):
            reading = fleet.source.read([target], now=fleet.clock.now)
        fleet.clock.now += 10
        for each in (page, other):
            say(each, f"rightpool_samples_total {samples}\n")
    reading = fleet.source.read([mine], now=fleet.clock.now)
    assert reading.samples[mine.key].values[Field.SAMPLES_PER_SECOND] == 10.0


@pytest.mark.parametrize("value", ["1.7e308", "5e-324"])
def test_numbers_at_the_limits_of_arithmetic_are_missing(fleet: Fleet, value: str) -> None:
    for _ in range(2):
        fleet.pod(f'rightpool_chip_power_watts{{chip="0"}} {value}\nrightpool_samples_total 1\n')
    assert fleet.read().samples[KEY].values == {Field.PODS: 2, Field.SAMPLES: 2}


def test_a_counter_that_fell_was_started_anew(fleet: Fleet) -> None:
    page = fleet.pod("rightpool_samples_total 5000\n")
    fleet.read()
    fleet.clock.now += 10
    say(page, "rightpool_samples_total 30\n")
    assert fleet.read().samples[KEY].values[Field.SAMPLES_PER_SECOND] == 3.0


def test_a_constant_counter_is_a_zero_rate_and_gives_no_step_time(fleet: Fleet) -> None:
    fleet.pod("rightpool_samples_total 5\nrightpool_step_seconds_sum 1\nrightpool_step_seconds_count 2\n")
    fleet.read()
    fleet.clock.now += 10
    assert fleet.read().samples[KEY].values == {Field.SAMPLES_PER_SECOND: 0.0, Field.PODS: 1, Field.SAMPLES: 5}


def second_reading(fleet: Fleet, text: str) -> Mapping[Field, float]:
    """Of a pod whose page is this text and a number of steps, 10 and then 20."""
    page = fleet.pod("")
    for steps in (10, 20):
        fleet.clock.now += 10
        say(page, f"{text} {steps}\n")
        reading = fleet.read()
    return reading.samples[KEY].values


@pytest.mark.parametrize("seconds", ["-Inf", "NaN", "1.7e308", "5e-324", "3"])
def test_a_step_time_without_a_sum_is_missing_and_never_zero(fleet: Fleet, seconds: str) -> None:
    values = second_reading(fleet, f"rightpool_step_seconds_sum {seconds}\nrightpool_step_seconds_count")
    assert Field.STEP_SECONDS not in values


@pytest.mark.parametrize("samples", ["+Inf", "NaN", "-5", "1.7e308", "5e-324"])
def test_an_impossible_count_of_samples_is_missing_and_not_a_rate_of_zero(fleet: Fleet, samples: str) -> None:
    values = second_reading(fleet, f"rightpool_samples_total {samples}\nrightpool_steps_total")
    assert values == {Field.PODS: 1, Field.STEPS: 20}


def test_a_rate_over_a_long_gap_is_missing(fleet: Fleet) -> None:
    page = fleet.pod("rightpool_samples_total 0\n")
    fleet.read()
    fleet.clock.now += 41
    say(page, "rightpool_samples_total 410\n")
    assert Field.SAMPLES_PER_SECOND not in fleet.read().samples[KEY].values


def test_throughput_waits_for_a_pod_that_is_new(fleet: Fleet) -> None:
    fleet.pod("rightpool_samples_total 5\n")
    fleet.read()
    fleet.clock.now += 10
    fleet.pod("rightpool_samples_total 5\n")
    values = fleet.read().samples[KEY].values
    assert values == {Field.PODS: 2, Field.SAMPLES: 10}, "half of the pods' samples are not the job's"
    fleet.clock.now += 10
    assert Field.SAMPLES_PER_SECOND in fleet.read().samples[KEY].values


def test_a_pod_that_counts_no_samples_is_not_waited_for(fleet: Fleet) -> None:
    page = fleet.pod("rightpool_samples_total 0\n")
    fleet.pod('rightpool_chip_busy_ratio{chip="0"} 1\n')
    fleet.read()
    fleet.clock.now += 10
    say(page, "rightpool_samples_total 70\n")
    values = fleet.read().samples[KEY].values
    assert values[Field.SAMPLES_PER_SECOND] == 7.0
    assert Field.SAMPLES not in values, "not of all pods"


@pytest.mark.parametrize(
    "steps",
    [
        "rightpool_steps_total 5\n",
        "rightpool_step_seconds_sum 2\nrightpool_step_seconds_count 4\n",
        'rightpool_field_quality{field="rightpool_samples_total",quality="missing"} 1\n',
    ],
)
def test_samples_of_some_of_the_pods_that_step_are_not_the_jobs(fleet: Fleet, steps: str) -> None:
    page = fleet.pod("rightpool_samples_total 0\nrightpool_steps_total 1\nrightpool_step_samples 8\n")
    other = fleet.pod(steps)
    fleet.read()
    fleet.clock.now += 10
    say(page, "rightpool_samples_total 70\nrightpool_steps_total 10\nrightpool_step_samples 8\n")
    sample = fleet.read().samples[KEY]
    assert not {Field.SAMPLES_PER_SECOND, Field.SAMPLES} & sample.values.keys()
    assert sample.traits is None, "nor are those of a step"
    fleet.clock.now += 10
    say(page, "rightpool_samples_total 140\nrightpool_steps_total 20\nrightpool_step_samples 8\n")
    say(other, "")
    sample = fleet.read().samples[KEY]
    assert sample.values[Field.SAMPLES_PER_SECOND] == 7.0, "a pod without steps has no samples to count"
    assert sample.traits is not None and sample.traits.batch == 8


def test_a_pod_replaced_under_its_name_has_no_past(fleet: Fleet) -> None:
    fleet.pod("rightpool_samples_total 1000\n")
    fleet.read()
    fleet.clock.now += 10
    fleet.pods.clear()
    page = Page(lambda _: "rightpool_samples_total 1010\n")
    fleet.stack.enter_context(serving(page, "127.0.0.9", fleet.port))
    fleet.pods.append(("pod-0", "127.0.0.9"))
    assert Field.SAMPLES_PER_SECOND not in fleet.read().samples[KEY].values


@pytest.fixture
def impatient() -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield Fleet(stack, timeout=2.0)


def test_failed_pods_are_reported_and_the_others_are_read(impatient: Fleet) -> None:
    impatient.pod('rightpool_chip_busy_ratio{chip="0"} 0.5\n')
    impatient.pod(None)
    impatient.pod("<html>\n")
    slow = impatient.pod("")
    slow.answer = lambda _: (slow.wait(PATIENCE), "rightpool_samples_total 1\n")[1]
    impatient.pods.append(("not-yet", ""))

    def others() -> TelemetryReading | None:
        """Where the machine is busy, one of them may take too long as well."""
        reading = impatient.read()
        return reading if KEY in reading.samples else None

    reading = eventually(others)
    assert reading is not None and reading.up
    assert reading.samples[KEY].values[Field.PODS] == 1
    assert reading.samples[KEY].values[Field.CHIP_BUSY] == 0.5
    failures = sorted(reading.failures)
    assert [failure.split(":")[0] for failure in failures] == [f"pod ml/pod-{number}" for number in (1, 2, 3)]


def test_no_pod_responds(fleet: Fleet) -> None:
    fleet.pod(None)
    reading = fleet.read()
    assert (dict(reading.samples), reading.up) == ({}, True)


def test_without_targets() -> None:
    source = ScrapeReader()
    assert source.read([], 0.0) == TelemetryReading()
    source.close()


def test_derived_fields_are_marked_and_invalid_values_are_missing(fleet: Fleet) -> None:
    fleet.pod(
        'rightpool_chip_busy_ratio{chip="cpu"} 0.5\n'
        'rightpool_field_quality{field="rightpool_chip_busy_ratio",quality="derived"} 1\n'
        'rightpool_field_quality{field="rightpool_chip_power_watts",quality="derived"} 1\n'
        'rightpool_field_quality{field="rightpool_steps_total",quality="measured"} 1\n'
        'rightpool_chip_compute_active_ratio{chip="cpu"} 97\n'
        'rightpool_chip_matrix_active_ratio{chip="cpu"} 1.01\n'
        "rightpool_checkpoint_timestamp_seconds -5\n"
        "rightpool_steps_total 12\n"
    )
    sample = fleet.read().samples[KEY]
    assert sample.derived == {Field.CHIP_BUSY, Field.SLOWEST_CHIP_BUSY}
    assert sample.values[Field.MATRIX_ACTIVE] == 1.0
    assert sample.values[Field.STEPS] == 12
    assert not {Field.COMPUTE_ACTIVE, Field.CHECKPOINT_TIMESTAMP} & sample.values.keys()


def test_a_reading_ends_with_its_budget_and_reaches_the_others_next_time() -> None:
    """Ten pods answer in a reading, however long it takes them; so four readings are needed at least."""
    with ExitStack() as stack:
        fleet, over, asked = Fleet(stack, budget=0.3), threading.Event(), [0]

        def answer(_: str) -> str:
            asked[0] += 1
            if asked[0] > 10:
                over.wait(PATIENCE)
            return "rightpool_steps_total 1\n"

        for _ in range(40):
            fleet.pod("").answer = answer
        reading = fleet.read()
        over.set()
        assert any("were not read within" in failure for failure in reading.failures)

        def all_were_read() -> bool:
            fleet.clock.now += 10
            over.clear()
            asked[0] = 0
            fleet.read()
            over.set()
            return len({pod.name for pod in fleet.source._last}) == 40

        eventually(all_were_read)


def test_a_thousand_silent_pods_are_one_fact() -> None:
    source = ScrapeReader(port=free_port(), timeout=60.0, budget=PATIENCE)
    pods = tuple((f"pod-{number}", f"127.0.1.{number % 250 + 1}") for number in range(100))
    reading = source.read([Target(KEY, pods, 10.0)], 0.0)
    source.close()
    assert len(reading.failures) == 21
    assert reading.failures[-1] == "and 80 more failures"


def test_what_the_programs_say_of_the_model(fleet: Fleet) -> None:
    for _ in range(2):
        fleet.pod(
            'rightpool_model_info{precision="bf16",parameter_dtype="fp32",data="2",tensor="1"} 1\n'
            "rightpool_model_parameters 110000000\nrightpool_model_parameter_bytes 440000000\n"
            "rightpool_model_bytes 900000000\n"
            "rightpool_step_samples 32\nrightpool_step_flops 2e+17\nrightpool_steps_total 9\n"
        )
    expected = ModelTraits(
        "bf16", "fp32", 110_000_000, 440_000_000, 900_000_000, 64, 4e17, Parallelism(data=2, tensor=1)
    )
    assert fleet.read().samples[KEY].traits == expected


def test_a_program_that_says_nothing_of_its_model_has_no_traits(fleet: Fleet) -> None:
    fleet.pod("rightpool_steps_total 9\n")
    assert fleet.read().samples[KEY].traits is None
