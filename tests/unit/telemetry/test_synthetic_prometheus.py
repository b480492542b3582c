"""The benchmarks' Prometheus answers the operator's own queries: else they would measure an operator that is deaf."""

import threading
import time
from collections.abc import Iterator

import pytest

from benchmarks.synthetic_fleet import synthetic_jobs
from benchmarks.synthetic_prometheus import FleetSeries, server
from rightpool.profiles.sample import Field
from rightpool.telemetry.prometheus import PrometheusReader
from rightpool.telemetry.reader import Target
from tests.patience import PATIENCE

JOBS = synthetic_jobs(5)


@pytest.fixture
def series() -> FleetSeries:
    return FleetSeries(len(JOBS))


@pytest.fixture
def reader(series: FleetSeries) -> Iterator[PrometheusReader]:
    with server(0, series) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield PrometheusReader(f"http://127.0.0.1:{serving.server_port}", timeout=PATIENCE, budget=PATIENCE)
        serving.shutdown()


def test_every_reading_of_every_job_is_read(series: FleetSeries, reader: PrometheusReader) -> None:
    targets = [Target(job.revision_key, ((f"{job.key.name}-0", "10.0.0.1"),), 10.0) for job in JOBS]
    before = reader.read(targets, time.time())
    assert not before.failures and len(before.samples) == len(JOBS)
    assert {sample.span for sample in before.samples.values()} == {40.0}, "what the queries' rates are taken over"
    for job in JOBS:
        assert before.samples[job.revision_key].values.keys() >= job.reading(0.0).keys()
    series.slow_down(3)
    after = reader.read(targets, time.time())
    changes = [
        after.samples[job.revision_key].values[Field.SAMPLES_PER_SECOND]
        / before.samples[job.revision_key].values[Field.SAMPLES_PER_SECOND]
        for job in JOBS
    ]
    assert changes == [pytest.approx(0.5 if job.number == 3 else 1.0, rel=0.02) for job in JOBS]
