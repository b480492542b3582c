"""Sizes of servers with a target are looked at each quarter of an hour, in a thread, and replayed far more rarely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.status import PlaceSize
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.sizing import Sizing
from rightpool.profiles.demand import Demanded
from rightpool.profiles.latency import Distribution
from rightpool.profiles.loads import Loads
from rightpool.profiles.served import RequestCounter, RequestLevel, RequestTime, ServedWindow, ServerCounts
from rightpool.runtime.act.demand_records import DemandRecords
from rightpool.runtime.observe.server_sizes import REPLAYED, ServerSizes, place_of
from tests.patience import eventually
from tests.unit.planning.jobs import changed, running
from tests.unit.prediction.fixtures import A10G, A100
from tests.unit.runtime.act.test_chargeback_books import Cluster, Leader
from tests.unit.runtime.test_server_feed import NOW, SPEC, Operator

HOUR = 3600.0


def targeted(name: str = "ranker", p99: str = "80ms") -> Job:
    body = SPEC.model_dump(by_alias=True, exclude_none=True, mode="json")
    body["workload"]["server"]["replicas"] = {"min": 1, "max": 8}
    body["targets"]["latency"] = {"p99": p99}
    return changed(running(name=name), spec=ProfiledJobSpec.model_validate(body))


def batches(load: float, requests: float) -> ServedWindow:
    count = requests / load
    seconds = count * (0.010 + 0.001 * load)
    counts = {
        "requests": requests,
        "batched": requests,
        "batches": count,
        "timedBatches": count,
        "batchSeconds": seconds,
    }
    return ServedWindow(
        NOW, 15.0, ServerCounts({RequestCounter(one): value for one, value in counts.items()}, {}, {}), 1, True
    )


class Fleet:
    """Servers whose records are full, and how many cycles it takes until nothing runs."""

    def __init__(self, *jobs: Job, hours: float = 24.0) -> None:
        self.jobs = {job.key: job for job in jobs}
        self.records = DemandRecords(Cluster(), Leader(), "rightpool-system")  # type: ignore[arg-type]
        self.records.cycle(self.jobs.keys(), {}, NOW)
        draw = np.random.default_rng(2)
        for job in jobs:
            record, ref = self.records.of(job.key), job.state.revision
            assert record is not None and ref is not None
            first = round(NOW / 15.0) - round(hours * 240)
            counts = draw.poisson(15.0 * 900.0, round(hours * 240))
            record.fill(Demanded.REQUESTS, {first + index: float(count) for index, count in enumerate(counts)})
            for load in (1.0, 2.0, 4.0, 8.0) * 20:
                record.loads.extend(batches(load, 2000.0), place_of(ref), "hash")
        self.sizes = ServerSizes(self.records)

    def cycle(self, now: float, pools: Mapping[str, Pool] = MappingProxyType({})) -> None:
        self.sizes.cycle(self.jobs, pools, now)
        running = self.sizes._running
        eventually(lambda: running is None or running.done())

    def sized(self, job: Job) -> Sizing | None:
        return self.sizes.of(job)

    def known(self) -> int:
        """How many are known as far as they can be."""
        found = [self.sizes.of(job) for job in self.jobs.values()]
        return sum(one is not None and one.servable is not None for one in found)


def test_the_record_gives_the_size() -> None:
    job = targeted()
    fleet = Fleet(job)
    assert fleet.sized(job) is None
    fleet.cycle(NOW)
    fleet.cycle(NOW + 10.0)
    sizing = fleet.sized(job)
    assert sizing is not None and sizing.peak is not None and sizing.servable is not None
    assert 900.0 < sizing.peak < 1100.0
    needed = sizing.needed(1)
    assert needed is not None and needed > 1
    assert fleet.sized(targeted(p99="70ms")) is None, "another target takes another size"
    fleet.sizes.close()


def test_it_stays_the_same_object_while_nothing_is_new() -> None:
    job = targeted()
    fleet = Fleet(job)
    seen = []
    for minute in range(1, 60, 5):
        fleet.cycle(NOW + 60.0 * minute)
        seen.append(fleet.sized(job))
    assert len({id(one) for one in seen if one is not None}) == 1
    fleet.sizes.close()


def test_batches_that_are_timed_for_the_first_time_are_looked_at_at_once() -> None:
    """Before the quarter of an hour is over, and once."""
    job = targeted()
    fleet = Fleet(job)
    record = fleet.records.of(job.key)
    assert record is not None
    loads, record.loads = record.loads, Loads()
    for second in (0.0, 1.0, 2.0):
        fleet.cycle(NOW + second)
    assert fleet.known() == 0
    record.loads = loads
    for second in (3.0, 4.0):
        fleet.cycle(NOW + second)
    assert fleet.known() == 1
    fleet.sizes.cycle(fleet.jobs, {}, NOW + 5.0)
    assert fleet.sizes._running is None
    seen, ref = loads.seen, job.state.revision
    assert ref is not None
    loads.extend(batches(64.0, 2000.0), place_of(ref), "hash")
    assert loads.seen == seen, "once more is nothing new"
    for _ in range(20 * 4):
        loads.extend(batches(32.0, 2000.0), place_of(ref), "hash")
        loads.extend(batches(64.0, 2000.0), place_of(ref), "hash")
        loads.extend(batches(128.0, 2000.0), place_of(ref), "hash")
        loads.extend(batches(256.0, 2000.0), place_of(ref), "hash")
    fleet.sizes.cycle(fleet.jobs, {}, NOW + 6.0)
    assert fleet.sizes._running is not None
    fleet.sizes.close()


def test_other_memory_that_is_declared_is_replayed_at_the_next_look() -> None:
    job = targeted()
    fleet = Fleet(job)
    for second in (0.0, 1.0, 1000.0, 1001.0):
        fleet.cycle(NOW + second)
    assert fleet.sizes._known[job.key].replayed_at == NOW
    placement = job.spec.placement.model_copy(update={"memory_per_chip": 20 * 2**30})
    fleet.jobs = {job.key: changed(job, spec=job.spec.model_copy(update={"placement": placement}))}
    for second in (2000.0, 2001.0):
        fleet.cycle(NOW + second)
    assert fleet.sizes._known[job.key].replayed_at == NOW + 2000.0
    fleet.sizes.close()


def tokens(running: float, used: float) -> ServedWindow:
    """2,000 answers of 20 tokens in 15 s."""
    between = Distribution((0.05,), (39_200.0,), 40_000.0, 40_000.0 * 0.015)
    counters = {RequestCounter.REQUESTS: 2000.0, RequestCounter.TOKENS_OUT: 40_000.0}
    levels = {RequestLevel.CONCURRENCY: running, RequestLevel.CACHE_USED: used}
    return ServedWindow(NOW, 15.0, ServerCounts(counters, {RequestTime.BETWEEN_TOKENS: between}, levels), 1, True)


def test_what_its_cache_holds_is_replayed_once_it_is_known() -> None:
    job = targeted()
    body = job.spec.model_dump(by_alias=True, exclude_none=True, mode="json")
    body["targets"] = {"objective": "MinimizeCost", "interTokenLatency": {"p99": "80ms"}}
    job = changed(job, spec=ProfiledJobSpec.model_validate(body))
    fleet = Fleet(job)
    record, ref = fleet.records.of(job.key), job.state.revision
    assert record is not None and ref is not None
    first = round(NOW / 15.0) - 24 * 240
    record.fill(Demanded.TOKENS_OUT, {first + index: 20.0 * 15.0 * 900.0 for index in range(24 * 240)})
    record.loads = Loads()
    record.loads.extend(tokens(40.0, 0.02), place_of(ref), "hash")
    for second in (0.0, 1.0, 1000.0, 1001.0):
        fleet.cycle(NOW + second, {"a100": A100})
    before = fleet.sized(job)
    assert before is not None and before.at("a100") is not None and not before.cache_known
    record.loads.extend(tokens(40.0, 0.8), place_of(ref), "hash")
    for second in (2000.0, 2001.0):
        fleet.cycle(NOW + second, {"a100": A100})
    after = fleet.sized(job)
    size = None if after is None else after.at("a100")
    assert size is not None and size.held == 50.0
    fleet.sizes.close()


def test_few_records_are_replayed_at_once() -> None:
    jobs = [targeted(f"s{index}") for index in range(2 * REPLAYED + 1)]
    fleet = Fleet(*jobs)
    fleet.cycle(NOW)
    for expected in (REPLAYED, 2 * REPLAYED, len(jobs), len(jobs)):
        fleet.cycle(NOW + expected)
        assert fleet.known() == expected
    fleet.sizes.close()


def test_a_young_record_gives_no_size() -> None:
    job = targeted()
    fleet = Fleet(job, hours=0.5)
    fleet.cycle(NOW)
    fleet.cycle(NOW + 10.0)
    sizing = fleet.sized(job)
    assert sizing is not None
    assert (sizing.peak, sizing.recorded, sizing.needed(3)) == (None, 1800.0, None)
    fleet.sizes.close()


def test_who_does_not_lead_and_who_is_gone_are_forgotten() -> None:
    job = targeted()
    fleet = Fleet(job)
    for step in range(2):
        fleet.cycle(NOW + step)
    fleet.jobs = {}
    fleet.cycle(NOW + 10.0)
    assert fleet.sized(job) is None
    fleet.jobs = {job.key: job}
    for step in range(2):
        fleet.cycle(NOW + 20.0 + step)
    assert fleet.sized(job) is not None
    fleet.sizes.follow()
    assert fleet.sized(job) is None
    fleet.sizes.close()


def test_what_is_read_of_a_server_is_remembered_where_it_runs() -> None:
    operator, job = Operator(Cluster()), targeted()
    window = batches(4.0, 2000.0)
    operator.reader.counts = window.counts
    for second in range(0, 90, 15):
        operator.cycle(NOW + second, job)
    record, ref = operator.records.of(JobKey(*job.key)), job.state.revision
    assert record is not None and ref is not None
    points = record.loads.at(place_of(ref))
    assert points is not None
    assert points.load.tolist() == [4.0]
    sizing = operator.feed.seen(job).sizing
    assert sizing is not None and sizing.peak is None, "a minute is too short"
    assert operator.feed.seen(replace(job, spec=SPEC)).sizing is None, "it has no target"
    operator.feed.close()


def test_what_is_timed_elsewhere_is_replayed_as_more_of_it_is() -> None:
    """As in a trial, though the server has been there before."""
    job = targeted()
    fleet, pools = Fleet(job), {"a100": A100, "a10g": A10G}

    def there() -> PlaceSize:
        for second in range(4):
            fleet.cycle(NOW + second, pools)
        sizing = fleet.sized(job)
        found = None if sizing is None else sizing.at("a10g")
        assert found is not None
        return found

    assert not there().measured
    record, ref = fleet.records.of(job.key), job.state.revision
    assert record is not None and ref is not None
    place = f"a10g/{ref.placement.chips_per_replica}"
    record.loads.extend(batches(1.0, 2000.0), place, "hash")
    first = there()
    assert first.measured and first.seen == 1.0
    for load in (1.0, 2.0, 4.0) * 4:
        record.loads.extend(batches(load, 2000.0), place, "hash")
    assert there().seen == 4.0
    fleet.sizes.close()
