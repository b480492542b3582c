"""Garbage in what pods, tenants and drivers say: a cycle goes on, and nobody else's job is any different for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import pytest

from benchmarks.cycle import Cluster, Readings, planner_of
from rightpool.cluster.resources import ACCELERATOR_POOLS, PROFILED_JOBS
from rightpool.planning.jobs.job import JobKey
from rightpool.profiles.sample import Field
from rightpool.runtime.act.executor import Executor
from rightpool.runtime.observe.store import Store
from rightpool.telemetry.reader import Target, TelemetryReading
from rightpool.telemetry.samples import sample_of
from rightpool.telemetry.sources.source import SourceReading
from tests.unit.runtime.small_fleet import small_store

CYCLES = 9
START = 1_800_000_000.0
Body = dict[str, Any]


class Lies(Readings):
    """Pages that say what their programs like, by name of the job."""

    def __init__(self, pages: Mapping[str, Callable[[float], dict[Field, float]]]) -> None:
        self._pages = pages

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        """What is admissible of it, as of any page."""
        samples = dict(super().read(targets, now).samples)
        for key, sample in list(samples.items()):
            if key.job in self._pages:
                claimed = {**sample.values, **self._pages[key.job](now)}
                made = sample_of([SourceReading(now, claimed)])
                if made is None:
                    del samples[key]
                else:
                    samples[key] = made
        return TelemetryReading(samples)


def run(cluster: Cluster, store: Store, reader: Any = None, stopping: Container[str] = ()) -> dict[JobKey, Body]:
    """Statuses after a few cycles. stopping: jobs that are to be suspended once something is known of them."""
    clock = {"now": START}
    planner = planner_of(cluster, store, clock, reader)
    for cycle in range(CYCLES):
        for key in store.jobs() if cycle == CYCLES - 2 else ():
            if key.name in stopping:
                body = cluster.stored(PROFILED_JOBS, *key)
                body["metadata"]["generation"] = 2
                body["spec"] |= {"suspend": True, "checkpoint": {"mode": "Periodic"}}
                store.observe(PROFILED_JOBS, "MODIFIED", cluster.put(PROFILED_JOBS, body))
        planner.cycle()
        clock["now"] += 10.0
    return {key: cluster.stored(PROFILED_JOBS, *key).get("status", {}) for key in store.jobs()}


ALL = [field for field in Field if field is not Field.PODS]
PAGES: dict[str, Callable[[float], dict[Field, float]]] = {
    **{
        repr(value): lambda _, value=value: dict.fromkeys(ALL, value)  # type: ignore[misc]
        for value in (-1.0, 0.0, float("nan"), float("inf"), -float("inf"), 1e308, 1e18, 1e-12, 5e-324, 1.0)
    },
    "ahead": lambda now: {Field.CHECKPOINT_TIMESTAMP: now + 3.15e9},
    "far ahead": lambda _: {Field.CHECKPOINT_TIMESTAMP: 1e18},
    "a save of ages": lambda _: {Field.CHECKPOINT_SECONDS: 1e18},
    "no pods": lambda _: {Field.PODS: 0.0},
    "more pods than there are": lambda _: {Field.PODS: 1e18},
    "counts backwards": lambda now: {Field.SAMPLES: 1e12 - now, Field.STEPS: 1e12 - now},
    "jumps": lambda now: {Field.SAMPLES: 1e17 * (now % 7), Field.STEPS: 1e17 * (now % 3)},
    "as fast as nothing is": lambda _: {Field.SAMPLES_PER_SECOND: 1e18, Field.STEP_SECONDS: 1e-12},
    "as slow as nothing is": lambda _: {Field.SAMPLES_PER_SECOND: 1e-12, Field.STEP_SECONDS: 1e18},
}
HONEST = 3


def test_pages_that_lie(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of jobs that their users stop in the end, whose saves are waited for."""
    monkeypatch.setattr(Executor, "carry_out", lambda *_: True)  # nothing is there to stop
    names = dict(zip((f"job-{number}" for number in range(HONEST, 99)), PAGES, strict=False))
    jobs = HONEST + len(PAGES)
    cluster = Cluster()
    honest = run(cluster, small_store(cluster, jobs, START))
    cluster = Cluster()
    store = small_store(cluster, jobs, START)
    with caplog.at_level(logging.WARNING):
        reader = Lies({name: PAGES[page] for name, page in names.items()})
        after = run(cluster, store, reader, stopping=names)
    complaints = [(record.getMessage(), getattr(record, "job", "")) for record in caplog.records]
    assert complaints == []
    assert {key.name for key in honest if after[key] != honest[key]} <= names.keys()
    for key, job in store.jobs().items():
        assert after[key]["conditions"], names[key.name]
        assert job.job.unreadable is None, "what the operator has written it can read"
        assert not any(c["reason"] == "OperatorFailed" for c in after[key]["conditions"]), names[key.name]
        if key.name in names:
            assert job.job.state.pause is not None, names[key.name]


POOL = {"accelerator": "Mine", "chip": {"memory": "48Gi"}, "chipsPerNode": 8, "resourceName": "nvidia.com/gpu"}
ABSURD: dict[str, Body] = {
    "dear": {"price": {"perChipHour": "1e25"}},
    "cheap": {"price": {"perChipHour": "-1"}},
    "fast": {"chip": {"memory": "9999Ei", "teraflops": {"bf16": "1e300"}}},
    "slow": {"interconnect": {"intraNode": {"kind": "PCIe", "gigabytesPerSecond": "NaN"}}},
    "large": {"slice": {"topology": "999x999x999", "chips": 997_002_999}},
    "many": {"maxChips": 10**30},
    "less than none": {"chipsPerNode": -1},
    "labelled": {"nodeSelector": {f"label-{number}": "x" for number in range(1_000)}},
    "tolerant": {"tolerations": [{"operator": "Bogus", "key": 3}] * 1_000},
}


def test_absurd_pools_and_statuses() -> None:
    """Each says what is wrong with it, and no job is any different."""
    cluster = Cluster()
    honest = run(cluster, small_store(cluster, 2, START))
    cluster = Cluster()
    store = small_store(cluster, 2, START)
    for name, spec in ABSURD.items():
        about = {"name": name.replace(" ", "-"), "uid": name, "generation": 1}
        garbage = {"prices": [{}], "outcomes": [{"finishedAt": "never"}], "spotUses": [7], "calibration": {"chips": -1}}
        kind = {"apiVersion": "rightpool.dev/v1alpha1", "kind": "AcceleratorPool"}
        body = {**kind, "metadata": about, "spec": {**POOL, **spec}, "status": garbage}
        store.observe(ACCELERATOR_POOLS, None, cluster.put(ACCELERATOR_POOLS, body))
    assert run(cluster, store) == honest
    for name in ABSURD:
        status = cluster.stored(ACCELERATOR_POOLS, None, name.replace(" ", "-"))["status"]
        ready = next(condition for condition in status["conditions"] if condition["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec"), (name, ready)
