"""Moves of servers: how many right ones real bursts undo, and what a chip that is slower than promised does to users.

Requests of a recorded trace, 100 a second in the mean, come to two sides of replicas that batch, endpoint by endpoint.
The operator's own steps and its own verdict carry the move out, at each of its readings; what it decides takes a while
until no request goes there, and what waits there is answered, however late. Both sides are sized by the operator for
the trace with a limit at p99; a slow chip takes 1.5 times as long for every batch as was promised.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final, NamedTuple, Protocol

import numpy as np

from benchmarks.servers.data import Line, Trace
from rightpool.planning.judge.traffic import (
    Answered,
    BatchTimes,
    TrafficBlock,
    TrafficVerdict,
    judge_traffic,
)
from rightpool.planning.moves.shares import first_share, next_share
from rightpool.planning.offers.servers.sizing import LatencyTarget, sized
from rightpool.prediction.columns import Floats
from rightpool.prediction.server import LoadLine
from rightpool.profiles.demand import SLOT
from rightpool.runtime.observe.server_feed import ALONE_SECONDS, READ_SECONDS, SHARED_READ_SECONDS

RATE: Final = 100.0
"""Requests a second, the mean of a trace."""
LATE: Final = 0.01
"""Share of requests that may be late."""
SLOWER: Final = 1.5
MOVES: Final = 20
"""Of each kind and trace."""
WEEK: Final = 7 * 24 * 240
"""Of SLOT."""
HOLD: Final = 3600.0
"""Seconds with all requests on the new side."""
ACTED: Final = 2.0
"""Seconds from a reading until no request goes to a side that is undone: a page, a cycle and a write of labels."""
DOUBT: Final = (0.01, 0.01, 0.01)
"""Of a promise: 10%."""
SIDES: Final = (
    (LoadLine(0.012, 0.0040, DOUBT, 16.0, 32.0), LoadLine(0.006, 0.0060, DOUBT, 16.0, 32.0), 0.25),
    (LoadLine(0.060, 0.0120, DOUBT, 16.0, 32.0), LoadLine(0.090, 0.0060, DOUBT, 16.0, 32.0), 0.60),
    (LoadLine(0.010, 0.0100, DOUBT, 8.0, 16.0), LoadLine(0.010, 0.0140, DOUBT, 8.0, 16.0), 0.20),
)
"""Seconds of batches here, there as promised, and the limit."""


@dataclass(slots=True)
class Replica:
    """One endpoint: it takes what waits as its next batch."""

    line: LoadLine
    """What its batches take, really."""
    free: float = -math.inf
    """When its last batch is over."""
    waiting: list[float] = field(default_factory=list)
    """When each of those came that are in no batch yet."""
    begun: list[tuple[float, int, int]] = field(default_factory=list)
    """Batches that are not over: until when, how many, and how many of them will be late."""

    def until(self, end: float, limit: float) -> tuple[float, float, float, float]:
        """Requests and late ones that are answered before `end`, batches and their seconds."""
        came, first, most = self.waiting, 0, int(self.line.most)
        while first < len(came) and (start := max(self.free, came[first])) < end:
            last = min(bisect_right(came, start, first), first + most)
            self.free = start + self.line.seconds(last - first)
            self.begun.append((self.free, last - first, bisect_left(came, self.free - limit, first, last) - first))
            first = last
        del came[:first]
        over = [one for one in self.begun if one[0] < end]
        self.begun = self.begun[len(over) :]
        requests, late = sum(size for _, size, _ in over), sum(late for *_, late in over)
        return requests, late, len(over), sum(self.line.seconds(size) for _, size, _ in over)


@dataclass(frozen=True, slots=True)
class Sides:
    """A move as it was planned."""

    here: LoadLine
    """What batches take where it is."""
    there: LoadLine
    """What was promised."""
    limit: float
    """Seconds."""
    new: int
    """Replicas there."""
    old: int
    """Replicas here."""
    spare: float
    """Times as long as promised that batches there may take."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What became of a move."""

    back: bool
    """Whether it was undone."""
    beyond: float
    """Late requests of the new side beyond as many as the old side would have had of them."""
    seconds: float
    """How long it took."""


class Came(NamedTuple):
    """What came of some seconds of requests."""

    block: TrafficBlock
    """Answers of both sides."""
    load: float
    """Requests of the new side's mean batch; 0 where it had none."""
    seconds: float
    """How long that took."""


class Answering(Protocol):
    """Both sides of a server under requests."""

    def __call__(self, up: int | None, seconds: float, *, last: bool = False) -> Came:
        """up: replicas of the new side that get requests beside the old side; None: all, and the old side none. last:
        nothing comes afterwards, and what waits is answered, too."""


def carried_out(sides: Sides, answering: Answering, hold: float = HOLD) -> Moved:
    """By the operator's own steps and verdict."""
    at, beyond = 0.0, 0.0
    up: int | None = first_share(sides.new, sides.old, sides.spare)
    while True:
        blocks: list[TrafficBlock] = []
        logs: list[float] = []
        begun = at
        while up is not None or at < begun + hold:
            just_loaded = up is not None or at < begun + ALONE_SECONDS
            taken = SHARED_READ_SECONDS if just_loaded else READ_SECONDS
            came = answering(up, taken)
            at += taken
            blocks.append(came.block)
            beyond += _beyond(came.block)
            if came.load:
                logs.append(math.log(came.seconds / sides.there.seconds(came.load)))
            found = judge_traffic(blocks, LATE, LATE, BatchTimes(logs, sides.spare))
            if found.verdict.undoes:
                beyond += _beyond(answering(up, ACTED, last=True).block)
                return Moved(True, max(beyond, 0.0), at)
            if up is not None and found.verdict is TrafficVerdict.HELD:
                break
        if up is None:
            return Moved(False, max(beyond, 0.0), at)
        up = next_share(up, sides.new, sides.old)


class Simulated:
    """Both sides in virtual time."""

    def __init__(self, counts: Floats, sides: Sides, slow: float, draw: np.random.Generator) -> None:
        """counts: of each SLOT from its beginning, again and again. slow: times as long as promised, really."""
        there = sides.there
        true = replace(there, fixed=there.fixed * slow, each=there.each * slow)
        self._new, self._old = (
            [Replica(true) for _ in range(sides.new)],
            [Replica(sides.here) for _ in range(sides.old)],
        )
        self._counts, self._limit, self._draw, self._at = counts, sides.limit, draw, 0.0

    def __call__(self, up: int | None, seconds: float, *, last: bool = False) -> Came:
        """As Answering has it."""
        endpoints = self._new if up is None else [*self._new[:up], *self._old]
        begin, draw = self._at, self._draw
        self._at += seconds
        number = int(draw.poisson(self._counts[int(begin / SLOT) % len(self._counts)] / SLOT * seconds))
        whose, moments = draw.integers(0, len(endpoints), number), begin + seconds * np.sort(draw.random(number))
        for index, moment in zip(whose.tolist(), moments.tolist(), strict=True):
            endpoints[index].waiting.append(moment)
        end = math.inf if last else self._at
        mine, theirs = (
            np.sum([one.until(end, self._limit) for one in side], axis=0).tolist() for side in (self._new, self._old)
        )
        load, mean = (mine[0] / mine[2], mine[3] / mine[2]) if mine[2] else (0.0, 0.0)
        old = None if up is None else Answered(theirs[0], theirs[1], 0.0, 0.0)
        block = TrafficBlock(Answered(mine[0], mine[1], 0.0, 0.0), old)
        return Came(block, load, mean * math.exp(0.05 * draw.standard_normal()))


def _beyond(block: TrafficBlock) -> float:
    """Late ones of the new side beyond as many as the old side would have had of its requests."""
    if block.old is None or not block.old.requests:
        return block.new.late
    return block.new.late - block.old.late / block.old.requests * block.new.requests


def moves(found: Sequence[Trace]) -> Iterator[Line]:
    """All traces, all sides."""
    right: list[bool] = []
    wrong: list[Moved] = []
    for one in found:
        counts = np.nan_to_num(one.counts)
        counts = counts if len(counts) >= WEEK else np.tile(counts, 2)  # an hour is too short to be sized for
        counts = counts * (RATE * SLOT / counts.mean())
        for index, (here, there, limit) in enumerate(SIDES):
            target, record = LatencyTarget(limit, 1.0 - LATE), counts[:WEEK]
            new, old = (sized("", line, record, target) for line in (there, here))
            assert new is not None and old is not None
            sides = Sides(here, there, limit, new.replicas, old.replicas, new.spare)
            for slow in (1.0, SLOWER):
                draw = np.random.default_rng(index)
                begins = draw.integers(len(counts), size=MOVES).tolist()
                runs = [carried_out(sides, Simulated(np.roll(counts, -begin), sides, slow, draw)) for begin in begins]
                if slow == 1.0:
                    right += [run.back for run in runs]
                elif sides.spare < slow:  # else it keeps the limit all the same
                    wrong += runs
                figures: dict[str, float | None] = {
                    "back": float(np.mean([run.back for run in runs])),
                    "late beyond, median": median(run.beyond for run in runs),
                    "most": max(run.beyond for run in runs),
                    "minutes": median(run.seconds for run in runs) / 60.0,
                }
                who = f"{one.name}, {old.replicas} to {new.replicas} replicas, spare {new.spare:.2f}"
                yield Line(f"move, batches {slow:g} times as long", who, figures)
    undone = float(np.mean(right))
    yield Line("right moves undone", f"{len(right)}", {"share": undone}, "<= 2%", undone <= 0.02)
    back, most = float(np.mean([run.back for run in wrong])), max(run.beyond for run in wrong)
    yield Line("wrong moves that went back", f"{len(wrong)}", {"share": back}, "100%", back == 1.0)
    yield Line("late requests of one beyond the old side's", f"{len(wrong)}", {"most": most}, "<= 60", most <= 60)
