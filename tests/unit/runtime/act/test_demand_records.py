"""The stored records of demand: read by who begins to lead, extended by each reading, written rarely."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rightpool.planning.jobs.job import JobKey
from rightpool.profiles.served import RequestCounter, ServedWindow, ServerCounts
from rightpool.reporting.demand_object import DEMAND_PREFIX, demand_object, read_demand, recorded_server
from rightpool.runtime.act.demand_records import SAVE_SECONDS, SAVES_AT_ONCE, DemandRecords
from tests.unit.runtime.act.test_chargeback_books import Cluster, Leader

KEY = JobKey("shop", "ranker")
NOW = 20_000 * 86_400.0


def records(cluster: Cluster) -> DemandRecords:
    return DemandRecords(cluster, Leader(), "rightpool-system")  # type: ignore[arg-type]


def window(at: float, requests: float, complete: bool = True) -> ServedWindow:
    return ServedWindow(at, 15.0, ServerCounts({RequestCounter.REQUESTS: requests}, {}, {}), 2, complete)


def run(kept: DemandRecords, begin: float, seconds: float, requests: float = 30.0) -> float:
    at = begin
    while at < begin + seconds:
        at += 15.0
        kept.cycle({KEY}, {KEY: window(at, requests)}, at)
    return at


def known(kept: DemandRecords, now: float) -> int:
    record = kept.of(KEY)
    assert record is not None
    return int(np.count_nonzero(~np.isnan(record.counts(now))))


def test_it_is_written_every_half_hour_and_read_by_the_next_process() -> None:
    cluster = Cluster()
    first = records(cluster)
    now = run(first, NOW, 2 * SAVE_SECONDS + 60)
    assert cluster.writes == 2
    (body,) = cluster.objects.values()
    assert (body["metadata"]["name"], recorded_server(body)) == (f"{DEMAND_PREFIX}shop.ranker", KEY)
    assert read_demand(body).peak(now) == 2.0
    first.flush()
    assert cluster.writes == 3
    second = records(cluster)
    second.cycle({KEY}, {}, now)
    assert known(second, now) == known(first, now) > 200
    run(second, now + 600, 60)
    record = second.of(KEY)
    assert record is not None
    assert np.isnan(record.counts(now + 600)[-30:]).all()  # nobody has looked meanwhile


def test_nothing_is_written_where_nothing_is_new_or_nothing_is_complete() -> None:
    cluster = Cluster()
    kept = records(cluster)
    for index in range(300):
        at = NOW + 15.0 * index
        kept.cycle({KEY}, {KEY: window(at, 5.0, complete=False)} if index % 2 else {}, at)
    kept.flush()
    assert cluster.writes == 0
    assert known(kept, at) == 0


def test_a_thousand_servers_are_written_a_few_at_a_time() -> None:
    cluster = Cluster()
    kept = records(cluster)
    keys = {JobKey("shop", f"s{index}") for index in range(100)}
    kept.cycle(keys, {key: window(NOW, 5.0) for key in keys}, NOW)
    kept.cycle(keys, {}, NOW + SAVE_SECONDS)
    assert cluster.writes == SAVES_AT_ONCE
    for cycle in range(100):
        kept.cycle(keys, {}, NOW + SAVE_SECONDS + cycle)
    assert len(cluster.objects) == 100 == cluster.writes


def test_what_can_not_be_read_now_is_not_written_over() -> None:
    cluster = Cluster()
    run(records(cluster), NOW, SAVE_SECONDS + 60)
    cluster.down = True
    kept = records(cluster)
    kept.cycle({KEY}, {KEY: window(NOW, 5.0)}, NOW)
    assert kept.of(KEY) is None
    cluster.down = False
    kept.cycle({KEY}, {}, NOW + 61)
    assert known(kept, NOW + SAVE_SECONDS) > 100


def test_a_write_that_fails_is_tried_again() -> None:
    cluster = Cluster()
    kept = records(cluster)
    now = run(kept, NOW, 60)
    cluster.down = True
    now = run(kept, now, SAVE_SECONDS + 60)
    assert cluster.writes == 0
    cluster.down = False
    run(kept, now, SAVE_SECONDS + 60)
    assert cluster.writes == 1


def test_who_has_written_since_is_believed() -> None:
    cluster = Cluster()
    one, other = records(cluster), records(cluster)
    now = run(one, NOW, SAVE_SECONDS + 60)
    other.cycle({KEY}, {}, now)
    now = run(one, now, SAVE_SECONDS)
    run(other, now, SAVE_SECONDS + 60, requests=999.0)  # its version is an old one
    other.cycle({KEY}, {}, now + SAVE_SECONDS + 61)
    record = other.of(KEY)
    assert record is not None
    assert record.peak(now) == 2.0


@pytest.mark.parametrize("data", [{"requests.gz": "bm8gZ3ppcA=="}, {"requests.gz": "%%%"}])
def test_a_record_that_is_broken_begins_anew(data: dict[str, Any]) -> None:
    cluster = Cluster()
    kept = records(cluster)
    now = run(kept, NOW, SAVE_SECONDS + 60)
    (body,) = cluster.objects.values()
    body["binaryData"] = data
    again = records(cluster)
    now = run(again, now, SAVE_SECONDS + 60)
    (body,) = cluster.objects.values()
    assert read_demand(body).peak(now) == 2.0


def test_the_record_of_a_server_that_is_gone_goes_with_it() -> None:
    cluster = Cluster()
    kept = records(cluster)
    now = run(kept, NOW, SAVE_SECONDS + 60)
    assert len(cluster.objects) == 1
    cluster.gone = {KEY.name}
    kept.cycle(set(), {}, now + 15)
    assert not cluster.objects
    assert known(kept, now + 15) == 0


def test_the_record_of_a_server_that_went_while_nobody_led_goes_when_somebody_does() -> None:
    cluster = Cluster()
    run(records(cluster), NOW, SAVE_SECONDS + 60)
    cluster.gone = {KEY.name}
    records(cluster).cycle(set(), {}, NOW + SAVE_SECONDS + 90)
    assert not cluster.objects


def test_the_record_of_a_server_that_is_not_looked_after_now_stays() -> None:
    cluster = Cluster()
    kept = records(cluster)
    now = run(kept, NOW, SAVE_SECONDS + 60)
    kept.cycle(set(), {}, now + 15)
    assert len(cluster.objects) == 1
    kept.cycle({KEY}, {}, now + 30)
    records(cluster).cycle(set(), {}, now + 45)
    assert len(cluster.objects) == 1


def test_an_object_of_nobody_is_left_alone() -> None:
    cluster = Cluster()
    cluster.create(None, {"metadata": {"name": "x", "labels": {"rightpool.dev/demand": "true"}}})
    kept = records(cluster)
    kept.cycle({KEY}, {}, NOW)
    assert kept.of(KEY) is not None
    assert recorded_server(demand_object("own", KEY, kept.of(KEY), None)) == KEY  # type: ignore[arg-type]
