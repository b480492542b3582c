"""Dollars and lateness on recorded demand: what the operator's own sizing would pay, beside other policies.

A chip's truth is a line: its slope by MLPerf's Offline rate, its fixed part such that MLPerf's Server rate is the most
that keeps the benchmark's limit. On the first day the server is where its user put it. From the second on the plan
knows the record so far, the line of the first chip as fitted on noisy windows, and of another chip that it is so many
times as fast, give or take 10%; after a day there it has windows of that chip.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from benchmarks.servers.data import Line, Trace, rows
from rightpool.api.units import DAY, HOUR
from rightpool.planning.offers.servers.floor import DAYS, floors
from rightpool.planning.offers.servers.sizing import LatencyTarget, mean_load, sized, why_not_held
from rightpool.prediction.columns import Floats, floats
from rightpool.prediction.replay import Replica
from rightpool.prediction.server import Lines, LoadLine, fit
from rightpool.profiles.demand import SLOT

PRICES: Final = {"NVIDIA A100-PCIe-80GB": 3.673, "NVIDIA L40": 1.861, "NVIDIA H100-PCIe-80GB": 6.98, "NVIDIA T4": 0.526}
"""Dollars an hour of a chip by the catalog; L40's rates at the price of an L40S."""
USERS: Final = "NVIDIA A100-PCIe-80GB"
BENCHMARKS: Final = {
    "bert-99": (0.130, 256),
    "resnet50": (0.015, 512),
    "retinanet": (0.100, 32),
}
"""Limit in seconds and largest batch."""
SURE: Final = (1e-12, 1e-12, 0.0)
QUANTILE: Final = 0.99
COLD: Final = 180.0  # seconds until a replica is ready
ELSEWHERE_SD: Final = 0.10
PLANNED: Final = (1, 2, 5, 9, 14, 19)
"""Days at whose start there is a plan."""
PEAK: Final = 6.0  # of the user's chips, at the 99.9th percentile of demand


@dataclass(frozen=True, slots=True)
class Chip:
    """What a benchmark does on one kind of chip."""

    name: str
    """As published."""
    price: float
    """Dollars an hour."""
    line: LoadLine
    """The truth."""
    servable: float
    """Requests a second within the limit: MLPerf's Server."""


@dataclass(frozen=True, slots=True)
class Paid:
    """One policy after the first day."""

    dollars: float
    """A million requests."""
    late: float
    """Share of requests."""


def chips(table: Path, benchmark: str) -> list[Chip]:
    """Those with both scenarios and a price; medians of all results."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows(table):
        if row["benchmark"] == benchmark and row["per_accel"]:
            found[row["accelerator"], row["scenario"]].append(float(row["per_accel"]))
    limit, batch = BENCHMARKS[benchmark]
    made = []
    for name, price in PRICES.items():
        if (name, "Server") in found and (name, "Offline") in found:
            server, offline = median(found[name, "Server"]), median(found[name, "Offline"])
            # No program serves all that it reaches in full batches.
            rate = max(offline, 1.02 * server)
            made.append(Chip(name, price, _line(rate, server, limit, batch), server))
    return made


def _line(offline: float, server: float, limit: float, batch: int) -> LoadLine:
    """Full batches at `offline`, and the fixed part with which `server` is the most that keeps the limit."""
    low, high = 1e-4, 0.95
    for _ in range(12):
        share = 0.5 * (low + high)
        line = _shared(offline, batch, share)
        found = Replica.of(Lines(floats([line.fixed]), floats([line.each])), batch, floats([limit]))
        late = found.replay(np.full(240, server * SLOT), np.ones(240)).late[0, 0]
        low, high = (share, high) if late <= 1.0 - QUANTILE else (low, share)
    return _shared(offline, batch, low)


def _shared(offline: float, batch: int, share: float) -> LoadLine:
    full = batch / offline
    return LoadLine(full * share, full * (1.0 - share) / batch, SURE, batch, batch)


@cache
def _truth(chip: Chip, limit: float) -> Replica:
    one = Lines(floats([chip.line.fixed]), floats([chip.line.each]))
    return Replica.of(one, chip.line.most, floats([limit]))


def paid(chip: Chip, counts: Floats, replicas: Floats, billed: Floats, limit: float) -> Paid:
    """After the first day."""
    later = slice(round(DAY / SLOT), None)
    found = _truth(chip, limit).replay(counts[later], replicas[later])
    dollars = float(billed[later].sum()) * chip.price * SLOT / HOUR
    return Paid(dollars / (float(np.nansum(counts[later])) / 1e6), float(found.late[0, 0]))


def autoscaled(rate: Floats, servable: float, target: float) -> tuple[Floats, Floats]:
    """Replicas that are ready and those that are paid, window by window: an HPA on requests a second, with its
    tolerance of 10%, its 5 minutes before it goes down, and replicas that are ready after COLD."""
    ready, paid_for = np.empty(len(rate)), np.empty(len(rate))
    cold, down = round(COLD / SLOT), round(300.0 / SLOT)
    now = max(1, math.ceil(rate[0] / (servable * target)))
    pending: list[tuple[int, int]] = []
    wanted: list[int] = []
    seen = np.convolve(rate, np.ones(4) / 4.0)[: len(rate)]
    seen[:3] = rate[:3]
    for window, found in enumerate(seen.tolist()):
        while pending and pending[0][0] <= window:
            now += pending.pop(0)[1]
        have = now + sum(count for _, count in pending)
        want = max(1, math.ceil(found / (servable * target)))
        if abs(found / (have * servable * target) - 1.0) < 0.1:
            want = have
        wanted = [*wanted[-down:], want]
        if want > have:
            pending.append((window + cold, want - have))
        elif max(wanted) < have and not pending:
            now = max(wanted)
        ready[window], paid_for[window] = now, now + sum(count for _, count in pending)
    return ready, paid_for


def oracle(rate: Floats, found: list[Chip]) -> float:
    """Dollars a million requests of the cheapest mix for each five minutes' peak, known ahead and free to start."""
    size = round(300.0 / SLOT)
    later = rate[round(DAY / SLOT) :]
    peaks = later[: len(later) // size * size].reshape(-1, size).max(axis=1)
    numbers = np.meshgrid(*(np.arange(math.ceil(peaks.max() / chip.servable) + 1.0) for chip in found))
    capacity, price = (
        sum((n.ravel() * value for n, value in zip(numbers, values, strict=True)), start=np.zeros(numbers[0].size))
        for values in ([chip.servable for chip in found], [chip.price for chip in found])
    )
    order = np.argsort(capacity)
    mixes = np.stack([capacity[order], price[order]], axis=1)
    best = np.minimum.accumulate(mixes[::-1, 1])[::-1]
    dollars = best[np.searchsorted(mixes[:, 0], peaks)].sum() * 300.0 / HOUR
    return float(dollars / (later.sum() * SLOT / 1e6))


def planned(found: Mapping[str, Chip], counts: Floats, limit: float, headroom: float) -> tuple[Paid, str]:
    """What the operator's sizing pays: plans at the start of some days, by the last week."""
    target = LatencyTarget(limit, QUANTILE, headroom)
    day = round(DAY / SLOT)
    asked, here = floors(counts) * headroom, USERS
    replicas, billed = np.ones(len(counts)), np.zeros(len(counts))
    late, names = 0.0, []
    noise = np.random.default_rng(0)
    lines: dict[str, LoadLine] = {}
    dollars = 0.0
    starts = [start * day for start in PLANNED if start * day < len(counts)]
    for start, end in zip(starts, [*starts[1:], len(counts)], strict=True):
        record, today = counts[max(0, start - DAYS * day) : start], slice(start, end)
        lines[here] = _measured(found[here], record, noise)
        sizes = [
            sized(name, lines.get(name) or _moved(lines[here], found[here], chip, noise), record, target)
            for name, chip in found.items()
        ]
        held = [one for one in sizes if one is not None and why_not_held(one, target) is None]
        chosen = min(held, key=lambda one: (one.hours or math.inf) * found[one.pool].price)
        here = chosen.pool
        names.append(here)
        replicas[today] = np.maximum(np.ceil(asked[today] / chosen.servable), 1.0)
        billed[today] = replicas[today] * found[here].price
        shares = _truth(found[here], limit).replay(counts[today], replicas[today])
        late += float(shares.late[0, 0] * np.nansum(counts[today]))
        dollars += float(billed[today].sum()) * SLOT / HOUR
    requests = float(np.nansum(counts[day:]))
    return Paid(dollars / (requests / 1e6), late / requests), max(set(names), key=names.count)


def _measured(chip: Chip, record: Floats, noise: np.random.Generator) -> LoadLine:
    """Fitted on 96 windows at the loads of the record, of which each is 5% off."""
    rates = np.quantile(record[np.isfinite(record)], np.linspace(0.05, 1.0, 96)) / SLOT
    loads = floats([mean_load(chip.line, rate / rates[-1] * 0.9 * chip.servable) for rate in rates.tolist()])
    seconds = (chip.line.fixed + chip.line.each * loads) * np.exp(0.05 * noise.standard_normal(len(loads)))
    return fit(loads, seconds, np.ones(len(loads)), chip.line.most)


def _moved(line: LoadLine, here: Chip, there: Chip, noise: np.random.Generator) -> LoadLine:
    """On a chip that nobody has run it on: as much faster as full batches are, as far as that is known."""
    faster = there.line.capacity / here.line.capacity * math.exp(ELSEWHERE_SD * noise.standard_normal())
    moved = line.elsewhere(faster, ELSEWHERE_SD)
    return replace(moved, seen=0.0)


def money(one: Trace, table: Path, headroom: float = 1.0) -> list[Line]:
    """All policies on one trace of counts."""
    lines = []
    for benchmark, (limit, _) in BENCHMARKS.items():
        found = {chip.name: chip for chip in chips(table, benchmark)}
        user = found[USERS]
        rate = np.nan_to_num(one.counts) / SLOT
        rate = rate * (PEAK * user.servable / np.quantile(rate, 0.999))
        counts = np.round(rate * SLOT)
        day = round(DAY / SLOT)
        first = float(rate[:day].max())
        least = min(found.values(), key=lambda chip: chip.price / chip.servable)

        def static(chip: Chip, peak: float = first, counts: Floats = counts, limit: float = limit) -> Paid:
            number = np.full(len(counts), float(math.ceil(peak / chip.servable)))
            return paid(chip, counts, number, number, limit)

        policies = {"A100 for day 1's peak": static(user), f"{least.name} for day 1's peak": static(least)}
        mix = float(np.mean(rate[:day]))
        once = min(found.values(), key=lambda chip: math.ceil(mix / chip.servable) * chip.price)
        policies[f"{once.name}, by day 1's mean"] = static(once, 1.2 * mix)
        for target in (0.5, 0.7, 0.85):
            ready, billed = autoscaled(rate, user.servable, target)
            policies[f"A100, HPA at {target:.0%}"] = paid(user, counts, ready, billed, limit)
        ours, chosen = planned(found, counts, limit, headroom)
        user_pays, least_pays = policies["A100 for day 1's peak"], policies[f"{least.name} for day 1's peak"]
        name = f"{one.name}, {benchmark}"
        lines += [Line(name, who, {"$/M": found.dollars, "late": found.late}) for who, found in policies.items()]
        lines.append(Line(name, "oracle, mix every 5 min", {"$/M": oracle(rate, list(found.values()))}))
        lines += [
            Line(name, f"plan: {chosen}", {"$/M": ours.dollars, "late": ours.late}, "late <= 0.5%", ours.late <= 0.005),
            _ratio(name, "plan / A100 for the peak", ours.dollars / user_pays.dollars, 0.55),
            _ratio(name, "plan / the one chosen knowing the peak", ours.dollars / least_pays.dollars, 1.05),
        ]
    return lines


def _ratio(name: str, who: str, found: float, most: float) -> Line:
    return Line(name, who, {"ratio": found}, f"<= {most}", found <= most)
