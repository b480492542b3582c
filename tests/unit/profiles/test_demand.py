"""The record of demand: what is known of it, how much its coarse part loses, and that it survives a restart."""

from __future__ import annotations

import gzip
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightpool.profiles.demand import DAY, DAYS, SLOT, Demanded, DemandRecord
from rightpool.profiles.served import RequestCounter, ServedWindow, ServerCounts

START = 20_000 * 86_400.0
TRACE = Path(os.environ.get("RIGHTPOOL_SHARED", "/nowhere")) / "data" / "serving" / "twitter_15s.csv.gz"


def window(at: float, seconds: float, requests: float, complete: bool = True) -> ServedWindow:
    return ServedWindow(at, seconds, ServerCounts({RequestCounter.REQUESTS: requests}, {}, {}), 1, complete)


def record_of(counts: np.ndarray, start: float = START) -> DemandRecord:
    record = DemandRecord()
    first = round(start / SLOT)
    record.fill(Demanded.REQUESTS, {first + index: float(one) for index, one in enumerate(counts)})
    return record


def trace() -> np.ndarray:
    with gzip.open(TRACE, "rt") as lines:
        return np.loadtxt(lines, delimiter=",", skiprows=1)[:, 1]


def test_nothing_is_known_at_first() -> None:
    record = DemandRecord()
    assert np.isnan(record.counts(START)).all()
    assert (record.seconds(START), record.peak(START), record.stored()) == (0.0, None, {})


def test_a_gap_is_unknown_and_a_quiet_time_is_none() -> None:
    record = DemandRecord()
    at = START
    for index in range(40):
        at += 15.0
        if index < 10 or index >= 20:  # nobody read it in between
            record.extend(window(at, 15.0, 0.0 if index < 5 else 30.0, complete=index != 30))
    counts = record.counts(at)[-40:]
    assert counts[:5].tolist() == [0.0] * 5
    assert counts[5:10].tolist() == [30.0] * 5
    assert np.isnan(counts[10:20]).all()
    assert np.isnan(counts[30])
    assert record.peak(at) == 2.0


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(2.0, 40.0), st.integers(0, 500)), min_size=5, max_size=60))
def test_windows_of_any_length_come_to_their_sum(windows: list[tuple[float, int]]) -> None:
    record, at = DemandRecord(), START
    for seconds, requests in windows:
        at += seconds
        record.extend(window(at, seconds, requests))
    counts = record.counts(at + SLOT)
    slots = math.floor(at / SLOT) - round(START / SLOT)
    assert np.count_nonzero(~np.isnan(counts)) == slots
    assert np.nansum(counts) <= sum(requests for _, requests in windows) + 1e-3
    rest = max(requests / seconds for seconds, requests in windows) * SLOT
    assert np.nansum(counts) >= sum(requests for _, requests in windows) - rest - 1e-3


def test_the_last_day_is_exact_and_a_week_is_kept() -> None:
    counts = np.random.default_rng(1).poisson(40, 9 * DAY).astype(float)
    record = record_of(counts)
    now = START + 9 * DAY * SLOT
    found = record.counts(now)
    assert len(found) == DAYS * DAY
    assert found[-DAY:].tolist() == counts[-DAY:].tolist()
    known = ~np.isnan(found)
    assert known.mean() > 0.999
    assert found[known].sum() == pytest.approx(counts[-len(found) :][known].sum(), rel=1e-4)
    assert np.nanmax(found) == counts[-len(found) :].max()


def test_after_a_week_without_a_reading_nothing_is_known_of_it() -> None:
    record = record_of(np.full(2 * DAY, 7.0))
    later = START + 12 * DAY * SLOT
    assert record.seconds(later) == 0
    record.extend(window(later, 15.0, 3.0))
    record.extend(window(later + 15.0, 15.0, 4.0))
    assert record.seconds(later + 30) == 30.0


@pytest.mark.skipif(not TRACE.is_file(), reason="RIGHTPOOL_SHARED is not set")
def test_a_real_week_survives_a_restart_in_little_room() -> None:
    record = record_of(trace()[: 7 * DAY])
    now = START + 7 * DAY * SLOT
    stored = record.stored()
    assert sum(map(len, stored.values())) < 30_000
    again = DemandRecord.read(stored)
    assert again.counts(now) == pytest.approx(record.counts(now), rel=0.001, abs=4.0, nan_ok=True)
    assert again.seconds(now) == record.seconds(now)
    assert again.stored() == DemandRecord.read(again.stored()).stored()


def capacity(counts: np.ndarray, late: float) -> float:
    """Requests of 15 s that a server must answer for no more to wait longer than a second, its queue being a fluid."""
    low, high = counts.mean(), 1.2 * counts.max()
    for _ in range(16):
        middle = (low + high) / 2
        backlog = waiting = 0.0
        for count in counts.tolist():
            over, limit = count - middle, middle / 15
            if over > 0:
                waiting += count * (1 - min(max((limit - backlog) / over, 0), 1))
            elif over < 0:
                waiting += count * min(max((limit - backlog) / over, 0), 1)
            backlog = max(backlog + over, 0.0)
        low, high = (low, middle) if waiting <= late * counts.sum() else (middle, high)
    return high


@pytest.mark.skipif(not TRACE.is_file(), reason="RIGHTPOOL_SHARED is not set")
def test_a_replay_of_the_coarse_part_asks_for_as_much() -> None:
    exact = trace()[: 6 * DAY]
    coarse = record_of(np.append(exact, np.ones(DAY + 20))).counts(START + 7 * DAY * SLOT + 300)
    coarse = coarse[~np.isnan(coarse)][: len(exact) - 40]
    assert coarse.sum() == pytest.approx(exact[20 : 20 + len(coarse)].sum(), rel=0.01)
    assert capacity(coarse, 0.01) == pytest.approx(capacity(exact, 0.01), rel=0.02)


def test_the_peak_around_this_time_of_day() -> None:
    counts = np.full(7 * DAY, 15.0)
    evening = np.arange(7 * DAY) % DAY > DAY * 3 // 4
    counts[evening] = 150.0
    record = record_of(counts)
    noon = START + 6 * DAY * SLOT + DAY * SLOT / 2
    assert record.peak(noon, within=3600) == pytest.approx(1.0, rel=0.01)
    assert record.peak(noon) == pytest.approx(10.0)
    assert record.peak(noon + 6 * 3600, within=3600) == pytest.approx(10.0)


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"no gzip",
        gzip.compress(b"1 5"),
        gzip.compress(b"2 5\n" + b"1\n" * 2017),
        gzip.compress(("1 9\n" + "\n".join(["."] * 2017)).encode()),
        gzip.compress(("1 9\n" + "\n".join(["x " * 20] * 2017)).encode()),
    ],
    # A gzip's bytes hold the second it was made in: as a name they differ from one worker to the next.
    ids=["empty", "no gzip", "another version", "too few slots", "no counts", "too many counts"],
)
def test_what_is_no_record_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        DemandRecord.read({"requests.gz": packed})


def test_what_is_known_is_not_written_over() -> None:
    record = DemandRecord()
    record.extend(window(START + 15, 15.0, 40.0))
    record.extend(window(START + 30, 15.0, 50.0))
    first = round(START / SLOT)
    record.fill(Demanded.REQUESTS, {first - 1: 9.0, first: 1.0})
    assert record.counts(START + 15)[-2:].tolist() == [9.0, 40.0]
