"""What the memory of keys and values on another chip is off by: against AIConfigurator's limits, and an engine that is
simulated token by token.

The engine admits requests in their order while their prompts fit, as vLLM does, and gives up the last one where the
answers that grow need its room. Prompts and answers are those of recorded traffic; the model knows how many requests
share the cache of the chip where the server is, and no length.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.servers.data import Line, Trace, rows
from rightpool.prediction.columns import Floats, floats
from rightpool.prediction.server import LoadLine
from rightpool.prediction.tokens import USED_SHARE, TokenLines, cache_ratio
from rightpool.profiles.demand import SLOT
from rightpool.profiles.served import RequestLevel, ServedWindow, ServerCounts

BYTES: Final = {"a100_sxm": 80e9, "h100_sxm": 80e9, "h200_sxm": 141e9, "l40s": 48e9, "b200_sxm": 180e9}
"""Of a chip."""
WEIGHTS: Final = {"meta-llama/Meta-Llama-3.1-8B": 16.06e9, "Qwen/Qwen3-32B": 32.8e9}
"""Bytes on each of the table's chips, in 16 bits."""
HERE: Final = 80e9
"""Bytes of the chip where the simulated server is."""
THERE: Final = 24e9
"""Bytes of the one it goes to."""
TOKEN: Final = 131_072.0
"""Bytes of keys and values of one token of it."""
MODEL: Final = "meta-llama/Meta-Llama-3.1-8B"
"""That is simulated."""
SEEN: Final = 40.0
"""Requests at once, at most, where the server is."""
LIMIT: Final = 1.0
"""Seconds to the first token."""
LOADS: Final = (0.7, 0.85, 0.95)
"""Shares of the requests that fill its cache in the mean."""
_LARGEST: Final = 256  # requests at once of the table: a limit above it is not seen
_WATERMARK: Final = 0.99  # of the cache, up to which prompts are admitted


def promised(table: Path) -> Line:
    """Between chips of other memory: how often more is promised than fits."""
    most: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for row in rows(table):
        found = most[row["model"], row["input_tokens"], row["output_tokens"]]
        found[row["system"]] = max(found.get(row["system"], 0.0), float(row["concurrency"]))
    pairs = [
        (limit * cache_ratio(BYTES[here], BYTES[there], WEIGHTS[case[0]]), limit * BYTES[there] / BYTES[here], other)
        for case, found in most.items()
        for here, limit in found.items()
        for there, other in found.items()
        if BYTES[here] != BYTES[there] and limit < _LARGEST
    ]
    # The table has powers of two: at least the limit, and less than twice as many, fit.
    over, plain = (
        float(np.mean([pair[kind] >= 2.0 * pair[2] and pair[2] < _LARGEST for pair in pairs])) for kind in (0, 1)
    )
    figures: dict[str, float | None] = {"pairs": float(len(pairs)), "too many": over, "by memory alone": plain}
    return Line("requests that memory holds", "promised more than fit", figures, "too many <= 0", over <= 0.0)


class Engine(NamedTuple):
    """A replica that generates tokens, as vLLM does."""

    room: float
    """Tokens that its cache holds."""
    step: tuple[float, float]
    """Seconds of a step that brings a token of each request, and what one more request adds."""
    first: tuple[float, float]
    """The same of a first token, from when it is admitted."""


class Run(NamedTuple):
    """What an Engine has done."""

    first: Floats
    """Seconds to the first token of each request; infinite where none came."""
    running: Floats
    """Requests in work at the end of each SLOT."""
    used: Floats
    """Share of the cache that is in use then."""


class _Work:
    """The requests of one run."""

    def __init__(self, engine: Engine, prompts: Floats, answers: Floats) -> None:
        self.engine, self.prompts, self.answers = engine, prompts, answers
        self.made = np.zeros(len(prompts))  # tokens of each, while it is not in work
        self.waiting: deque[int] = deque()
        self.running: list[int] = []
        self.size, self.left = np.zeros(0), np.zeros(0)

    def admit(self) -> list[int]:
        begun: list[int] = []
        used = float(self.size.sum())
        while self.waiting:
            one = self.waiting[0]
            used += self.prompts[one] + self.made[one]
            if used > _WATERMARK * self.engine.room and (self.running or begun):
                break
            begun.append(self.waiting.popleft())
        self.running += begun
        self.size = np.append(self.size, self.prompts[begun] + self.made[begun])
        self.left = np.append(self.left, self.answers[begun] - self.made[begun])
        while self.size.sum() + len(self.size) > self.engine.room and len(self.size) > 1:
            last = self.running.pop()
            self.made[last] = self.answers[last] - self.left[-1]
            self.size, self.left = self.size[:-1], self.left[:-1]
            self.waiting.appendleft(last)
        return begun

    def step(self) -> None:
        self.size, self.left = self.size + 1.0, self.left - 1.0
        stays = self.left > 0.0
        self.running = [one for one, more in zip(self.running, stays, strict=True) if more]
        self.size, self.left = self.size[stays], self.left[stays]


def run(engine: Engine, arrivals: Floats, prompts: Floats, answers: Floats) -> Run:
    """Until the last request has come."""
    work, first, levels = _Work(engine, prompts, answers), np.full(len(arrivals), np.inf), []
    now, come = 0.0, 0
    while come < len(arrivals):
        if not work.running and not work.waiting:
            now = max(now, float(arrivals[come]))
        while come < len(arrivals) and arrivals[come] <= now:
            work.waiting.append(come)
            come += 1
        begun, slot = work.admit(), now // SLOT
        at_once = len(work.running)
        for one in begun:
            first[one] = min(first[one], now + engine.first[0] + engine.first[1] * at_once - arrivals[one])
        now += engine.step[0] + engine.step[1] * at_once
        if now // SLOT > slot:
            levels.append((float(at_once), float(work.size.sum()) / engine.room))
        work.step()
    running, used = np.array(levels).T
    return Run(first, running, used)


def poisson(rate: float, lengths: tuple[Floats, Floats], slots: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Arrivals of so many SLOTs, and prompts and answers drawn from those of a trace. rate: requests a second."""
    draw = np.random.default_rng(seed)
    number = draw.poisson(rate * slots * SLOT)
    which = draw.integers(0, len(lengths[0]), number)
    return np.sort(draw.uniform(0.0, slots * SLOT, number)), lengths[0][which], lengths[1][which]


def held(seen: Run) -> float:
    """Requests that the cache holds by the levels of pages, as a server's line has it."""
    shares, weights = [], []
    for running, used in zip(seen.running.tolist(), seen.used.tolist(), strict=True):
        levels = {RequestLevel.CONCURRENCY: running, RequestLevel.CACHE_USED: used}
        share = ServedWindow(0.0, SLOT, ServerCounts({}, {}, levels), 1, True).cache_share
        if share is not None:
            shares.append(share)
            weights.append(running)
    return 1.0 / float(np.average(shares, weights=weights))


class Moved(NamedTuple):
    """First tokens later than LIMIT on the smaller chip."""

    load: float
    """Requests, as a share of what fills its cache."""
    late: float
    """Share of them that the engine has."""
    known: float
    """Predicted with what the cache is predicted to hold."""
    unknown: float
    """Predicted without."""


def moved(lengths: tuple[Floats, Floats], loads: Sequence[float], slots: int = 240) -> Iterator[Moved]:
    """To a chip of THERE that is half as fast. lengths: tokens of prompts and answers; slots: how long it answers."""
    lengths, tokens = (lengths[0], np.maximum(lengths[1], 1.0)), float(np.maximum(lengths[1], 1.0).mean())
    here, there = (
        Engine(
            (USED_SHARE * size - WEIGHTS[MODEL]) / TOKEN, (slow * 0.012, slow * 0.00012), (slow * 0.05, slow * 0.002)
        )
        for size, slow in ((HERE, 1.0), (THERE, 2.0))
    )
    usual = 0.6 * SEEN
    seen = run(here, *poisson(usual / (tokens * _seconds(here, usual)), lengths, slots // 4, 1))
    places = held(seen) * cache_ratio(HERE, THERE, WEIGHTS[MODEL])
    step, first = (LoadLine(*line, (1e-6, 1e-6, 0.0), SEEN, 1.5 * SEEN) for line in (there.step, there.first))
    for load in loads:
        rate = load * places / (tokens * _seconds(there, places))
        counts, one = np.full(slots, rate * SLOT), np.ones(slots)
        known, unknown = (
            float(
                TokenLines(step, first, 0.0, 0.0, tokens, most)
                .longer()
                .replica(tokens, floats([LIMIT]), floats([]))
                .replay(counts, one)
                .late[0, 0]
            )
            for most in (places, math.inf)
        )
        found = run(there, *poisson(rate, lengths, slots, 2))
        yield Moved(load, float(np.mean(found.first > LIMIT)), known, unknown)


def _seconds(engine: Engine, at_once: float) -> float:
    return engine.step[0] + engine.step[1] * at_once


def late_first(demand: Sequence[Trace]) -> Iterator[Line]:
    """Of traces with tokens."""
    for one in demand:
        for found in moved(one.tokens, LOADS) if one.tokens is not None else ():
            who = f"{one.name}, cache {found.load:.0%} full"
            figures: dict[str, float | None] = {
                "late": found.late,
                "predicted": found.known,
                "without memory": found.unknown,
            }
            yield Line("first tokens after 1 s, 24 GB", who, figures)
