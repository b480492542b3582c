"""Each source's recorded page through a real Prometheus: its fields arrive, those of an invented source too."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from rightpool.profiles.sample import Field, RevisionKey, Sample
from rightpool.telemetry.prometheus import PrometheusReader
from rightpool.telemetry.reader import Target, TelemetryReading
from rightpool.telemetry.sources import registry
from tests.integration.telemetry.conftest import Fleet
from tests.patience import eventually
from tests.unit.telemetry.pages import Page
from tests.unit.telemetry.sources.acme import ACME, FIELDS
from tests.unit.telemetry.sources.recordings import VENDORS, recorded

SAVED = 1_700_000_000
EXPECTED = {
    "sidecar": {
        Field.PODS: 1,
        Field.SAMPLES: 5120,
        Field.SAMPLES_PER_SECOND: 0,  # counters of a recorded page stand still
        Field.CHIP_BUSY: 0.9,
        Field.SLOWEST_CHIP_BUSY: 0.9,
        Field.COMPUTE_ACTIVE: 0.8,
        Field.MATRIX_ACTIVE: 0.7,
        Field.MEMORY_BANDWIDTH: 0.6,
        Field.MEMORY_USED: 6.1e10,
        Field.MEMORY_TOTAL: 8.5e10,
        Field.POWER: 400.5,
        Field.POWER_CAPPED: 1,
        Field.THROTTLE: 0,
        Field.THERMAL_THROTTLE: 0,
        Field.OCCUPANCY: 0.5,
        Field.MOST_COMPUTE_ACTIVE: 0.8,
        Field.LEAST_COMPUTE_ACTIVE: 0.8,
        Field.UNCORRECTED_ERRORS: 0,
        Field.PCIE_SENT: 0,
        Field.PEER_RECEIVED: 0,
        Field.INPUT_WAIT: 0.1,
        Field.LEAST_INPUT_WAIT: 0.1,
        Field.STEPS: 160,
        Field.CHECKPOINT_TIMESTAMP: SAVED,
        Field.CHECKPOINT_SECONDS: 1.5,
    },
    "dcgm": {
        Field.CHIP_BUSY: 0.99,
        Field.SLOWEST_CHIP_BUSY: 0.99,
        Field.COMPUTE_ACTIVE: 0.812345,
        Field.MATRIX_ACTIVE: 0.374102,
        Field.MEMORY_BANDWIDTH: 0.288614,
        Field.POWER: 362.418,
        Field.MEMORY_USED: 71234 * 2**20,
        Field.MOST_COMPUTE_ACTIVE: 0.812345,
        Field.LEAST_COMPUTE_ACTIVE: 0.812345,
        Field.PEER_SENT: 61234567890,
        Field.PCIE_SENT: 187431022,
    },
    "amd": {**VENDORS["amd"], Field.PEER_SENT: 0, Field.PEER_RECEIVED: 0},
    "tpu-device-plugin": VENDORS["tpu-device-plugin"],
    "neuron": VENDORS["neuron"],
    "gaudi": VENDORS["gaudi"],
    "acme": FIELDS,
}
DERIVED: dict[str, set[Field]] = {
    "sidecar": {Field.CHECKPOINT_SECONDS},
    "dcgm": {Field.CHIP_BUSY, Field.SLOWEST_CHIP_BUSY},
    "gaudi": {Field.CHIP_BUSY, Field.SLOWEST_CHIP_BUSY},
    "acme": {Field.MEMORY_BANDWIDTH},
}
STARTED = time.time()
NAMES = [*(source.name for source in registry.SOURCES), ACME.name]


def target(name: str) -> Target:
    """A job of which this source alone knows anything."""
    return Target(RevisionKey("ml", name, 1), ((f"{name}-0", "10.0.0.1"),), 10.0)


@pytest.fixture(scope="module")
def samples(fleet: Fleet) -> Iterator[dict[str, Sample]]:
    for name in NAMES:
        # A save that is dated far ahead is not believed.
        page = recorded(name).replace("llm-0", f"{name}-0").replace("1899999940", str(SAVED))
        labels = {"job": "dcgm-exporter", "namespace": "monitoring", "pod": f"exporter-{name}"}
        if name == "sidecar":
            labels = {"namespace": "ml", "profiledjob": name, "revision": "1", "pod": f"{name}-0"}
        fleet.pod(labels, Page(lambda _, page=page: page))  # type: ignore[misc]
    fleet.start()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registry, "SOURCES", (*registry.SOURCES, ACME))
        reader = PrometheusReader(fleet.url, scrape_interval=2.5)
    targets = [target(name) for name in NAMES]

    def complete() -> TelemetryReading | None:
        reading = reader.read(targets, time.time())
        whole = (
            not reading.failures
            and len(reading.samples) == len(NAMES)
            and all(reading.samples[target(name).key].values.keys() >= EXPECTED[name].keys() for name in NAMES)
        )
        return reading if whole else None

    reading = eventually(complete)
    assert reading is not None
    reader.close()
    assert reading.failures == ()
    yield {key.job: sample for key, sample in reading.samples.items()}


@pytest.mark.parametrize("name", NAMES)
def test_the_fields_of_a_recorded_page_arrive(samples: dict[str, Sample], name: str) -> None:
    assert samples[name].values == pytest.approx(EXPECTED[name])
    assert samples[name].derived == DERIVED.get(name, set())
    assert STARTED < samples[name].at < time.time(), "the time of a scrape"
