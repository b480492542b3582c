"""Dollars and lateness of servers that generate tokens, on recorded demand: what the operator's own sizing would pay.

A chip's truth is what AIConfigurator's model of vLLM says of it by requests at once. A trace of an hour is repeated for
two days, each hour so many times as busy as chance has it; the plan is made after the first one and knows its record,
and the line of each chip, fitted on windows that are 5% off.
"""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.servers.data import Line, Trace, rows
from rightpool.api.latency import Percentile
from rightpool.api.units import DAY, HOUR
from rightpool.planning.offers.servers.sizing import LatencyTarget, sized, why_not_held
from rightpool.prediction.columns import Floats
from rightpool.prediction.server import fit
from rightpool.prediction.tokens import TokenLines, TokenTimes
from rightpool.profiles.demand import SLOT

PRICES: Final = {"a100_sxm": 3.4309, "h100_sxm": 6.88, "h200_sxm": 7.912, "l40s": 1.861}
"""Dollars an hour of a chip by the catalog."""
LIMITS: Final = ((0.2, 0.02), (0.5, 0.04), (2.0, 0.1))
"""Seconds to the first token, and to each next one, of 95%."""
SHARE: Final = 0.95
LENGTHS: Final = {"azure2023_conv": ("1024", "256"), "azure2023_code": ("4096", "512")}
"""Tokens of prompt and answer in the table: it has none with as short answers to as long prompts as code has."""
HOURS: Final = 48
NOISE: Final = 0.1  # of the log of an hour's demand
SPREAD: Final = 0.2
PEAK: Final = 6.0  # of the cheapest chip's replicas, at the 99.9th percentile


class TokenChip(NamedTuple):
    """What a model does on a replica of one kind of chips."""

    name: str
    """As in the table."""
    price: float
    """Dollars an hour of a replica."""
    times: TokenTimes
    """The truth."""
    servable: float
    """Requests a second, the most that keep both limits when they come at random."""


def token_chips(
    table: Path, model: str, lengths: tuple[str, str], tokens: float, target: LatencyTarget
) -> list[TokenChip]:
    """Those that keep both limits at all."""
    found: dict[str, list[tuple[float, float, float, float]]] = defaultdict(list)
    for row in rows(table):
        if row["model"] == model and (row["input_tokens"], row["output_tokens"]) == lengths and row["ttft_ms"]:
            seconds = float(row["ttft_ms"]) / 1e3, float(row["tpot_ms"]) / 1e3
            found[row["system"]].append((float(row["concurrency"]), *seconds, float(row["tensor_parallel"])))
    made = []
    for name, price in PRICES.items():
        load, first, between, chips = np.array(sorted(found[name])).T
        at_once = np.arange(1.0, load[-1] + 1.0)
        times = TokenTimes(
            np.interp(at_once, load, between)[np.newaxis], np.interp(at_once, load, first)[np.newaxis], SPREAD, SPREAD
        )
        able = _servable(times, tokens, target)
        if able > 0.0:
            made.append(TokenChip(name, price * float(chips[0]), times, able))
    return made


def _servable(times: TokenTimes, tokens: float, target: LatencyTarget) -> float:
    replica, steady = times.replica(tokens, *target.tokens), np.full(240, SLOT)
    low, high = 0.0, float(replica.capacity[0])
    for _ in range(12):
        middle = 0.5 * (low + high)
        held = replica.replay(steady * middle, np.ones(240)).held(*target.quantiles)[0]
        low, high = (middle, high) if held else (low, middle)
    return low if low > 1e-3 * float(replica.capacity[0]) else 0.0


def token_money(one: Trace, table: Path) -> list[Line]:
    """Of one trace with tokens, for each model and pair of limits."""
    if one.tokens is None or one.name not in LENGTHS:
        return []
    tokens, noise, lines = float(one.tokens[1].mean()), np.random.default_rng(0), []
    hour = one.counts[: round(HOUR / SLOT)]
    busy = np.exp(NOISE * noise.standard_normal(HOURS))
    rate = (busy[:, np.newaxis] * hour).ravel() / SLOT
    for model in sorted({row["model"] for row in rows(table)}):
        for first, between in LIMITS:
            target = LatencyTarget(between, SHARE, first=Percentile("p95", SHARE, first))
            found = token_chips(table, model, LENGTHS[one.name], tokens, target)
            name = f"{one.name}, {model.split('/')[-1]}"
            who = f"first {first * 1e3:.0f} ms, next {between * 1e3:.0f} ms"
            if not found:
                lines.append(Line(name, f"{who}: no chip keeps them", {}))
                continue
            lines.append(_planned(name, who, found, rate, tokens, target))
    return lines


def _planned(name: str, who: str, found: list[TokenChip], rate: Floats, tokens: float, target: LatencyTarget) -> Line:
    day, noise = round(DAY / SLOT), np.random.default_rng(1)
    least = min(found, key=lambda chip: chip.price / chip.servable)
    rate = rate * (PEAK * least.servable / np.quantile(rate, 0.999))
    counts = np.round(rate * SLOT)
    record, today = counts[:day], counts[day:]
    sizes = [(chip, sized(chip.name, _line(chip, record, tokens, noise), record, target)) for chip in found]
    held = [(chip, size) for chip, size in sizes if size is not None and why_not_held(size, target) is None]
    if not held:
        return Line(name, f"{who}: nothing is promised", {})
    chip, size = min(held, key=lambda each: (each[1].hours or math.inf) * each[0].price)
    million = float(today.sum()) * tokens / 1e6
    number, hours = float(size.replicas), len(today) * SLOT / HOUR
    shares = chip.times.replica(tokens, *target.tokens).replay(today, np.full(len(today), number)).late[0]
    dollars = number * chip.price * hours / million
    peak = float(today.max()) / SLOT
    fixed = min(math.ceil(peak / each.servable) * each.price for each in found) * hours / million
    best = _oracle(today / SLOT, found) / million
    code = "code" in name
    ratio = dollars / (fixed if code else best)
    most = 1.1 if code else 1.25
    figures: dict[str, float | None] = {
        "$/M tokens": dollars,
        "to oracle": dollars / best,
        "to best fixed": dollars / fixed,
        "late first": float(shares[0]),
        "late next": float(shares[1]),
    }
    bar = f"{'fixed' if code else 'oracle'} <= {most}"
    return Line(name, f"{who}: {chip.name}", figures, bar, ratio <= most)


def _oracle(rate: Floats, found: list[TokenChip]) -> float:
    """Dollars of the cheapest kind of chip for each five minutes' peak, known ahead and free to start."""
    size = round(300.0 / SLOT)
    peaks = rate[: len(rate) // size * size].reshape(-1, size).max(axis=1)
    costs = np.min([np.ceil(peaks / chip.servable) * chip.price for chip in found], axis=0)
    return float(costs.sum()) * 300.0 / HOUR


def _line(chip: TokenChip, record: Floats, tokens: float, noise: np.random.Generator) -> TokenLines:
    """Fitted on windows at the loads of the record, where it is so many replicas that its peak is held."""
    at_once = np.arange(1.0, chip.times.places + 1.0)
    between, first = chip.times.between[0], chip.times.first[0]
    # The load at which a steady stream of so many requests a second is answered.
    served = at_once / (tokens * between)
    rates = np.quantile(record / record.max(), np.linspace(0.05, 1.0, 48)) * 0.9 * chip.servable
    loads = 1.0 + np.interp(rates, np.maximum.accumulate(served), at_once)
    off = np.exp(0.05 * noise.standard_normal((2, len(loads))))
    most = min(1.5 * float(loads.max()), float(chip.times.places))
    step = fit(loads, np.interp(loads, at_once, between) * off[0], np.ones(len(loads)), most)
    begun = fit(loads, np.interp(loads, at_once, first) * off[1], np.ones(len(loads)), most)
    return TokenLines(step, begun, SPREAD, SPREAD, tokens)
