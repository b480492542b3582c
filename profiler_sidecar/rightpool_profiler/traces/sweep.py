"""What goes on at the same time: one walk over spans in the order of time, which holds only those that are open.

At each moment the kinds of work that go on decide what the moment counts as:

    compute                   computing, and not communicating
    overlapped communication  both: it costs nothing
    exposed communication     communicating and not computing: what a faster link would save. It includes the wait for
                              slower peers, which is spent inside the collective
    memcpy                    copying alone
    input                     the program waits in its DataLoader, and nothing of the above goes on
    launch                    the host prepares the next work, and nothing of the above goes on
    idle                      none of it
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from rightpool import contract

COMPUTE: Final = 1
COMMUNICATION: Final = 2
COPY: Final = 4
INPUT: Final = 8
LAUNCH: Final = 16

Window = tuple[int, int]
Working = tuple[int, int, int, int]
"""Start, end, the kind of work, and a number that tells those apart whose time is wanted by itself; -1 for others."""


@dataclass(slots=True)
class Share:
    """Of the spans with one number: two at the same time count once."""

    count: int = 0
    """How many spans there are."""
    time: int = 0
    """In the unit of the spans."""
    exposed: int = 0
    """In which nothing goes on that covers it."""


@dataclass(slots=True)
class Swept:
    """Times within a window."""

    times: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """By the kinds of work that go on at once, added."""
    shares: dict[int, Share] = field(default_factory=dict)
    """By the number of the spans."""

    def parts(self, wanted: Iterable[str], *, loading_first: bool = False) -> dict[str, int]:
        """Time by part. wanted: the parts that there are here.

        loading_first: the wait for data goes before computing, as on a host, where operators make the batch.
        """
        found = dict.fromkeys(wanted, 0)
        for kinds, time in self.times.items():
            found[_part(kinds, loading_first)] += time
        return found


def sweep(streams: Iterable[Iterable[Working]], window: Window, covering: int = COMPUTE) -> Swept:
    """streams: each sorted by start. covering: kinds of work that spans with a number are exposed without."""
    first, last = window
    swept, going_on = Swept(), dict.fromkeys((COMPUTE, COMMUNICATION, COPY, INPUT, LAUNCH), 0)
    numbers: dict[int, int] = {}
    ends: list[tuple[int, int, int]] = []
    kinds, at = 0, first

    def advance(moment: int) -> None:
        nonlocal at
        if moment <= at:
            return
        swept.times[kinds] += moment - at
        for number in numbers:
            share = swept.shares[number]
            share.time += moment - at
            share.exposed += 0 if kinds & covering else moment - at
        at = moment

    def close() -> None:
        nonlocal kinds
        moment, kind, number = heapq.heappop(ends)
        advance(moment)
        going_on[kind] -= 1
        kinds = kinds if going_on[kind] else kinds & ~kind
        if number >= 0:
            numbers[number] -= 1
            if not numbers[number]:
                del numbers[number]

    for start, end, kind, number in heapq.merge(*streams):
        start, end = max(start, first), min(end, last)
        if end <= start:
            continue
        while ends and ends[0][0] <= start:
            close()
        advance(start)
        going_on[kind] += 1
        kinds |= kind
        if number >= 0:
            numbers[number] = numbers.get(number, 0) + 1
            swept.shares.setdefault(number, Share()).count += 1
        heapq.heappush(ends, (end, kind, number))
    while ends:
        close()
    advance(last)
    return swept


def _part(kinds: int, loading_first: bool) -> str:
    if loading_first and kinds & INPUT:
        return contract.PART_INPUT
    if kinds & COMPUTE:
        return contract.PART_OVERLAPPED_COMMUNICATION if kinds & COMMUNICATION else contract.PART_COMPUTE
    for kind, part in (
        (COMMUNICATION, contract.PART_EXPOSED_COMMUNICATION),
        (COPY, contract.PART_MEMCPY),
        (INPUT, contract.PART_INPUT),
        (LAUNCH, contract.PART_LAUNCH),
    ):
        if kinds & kind:
            return part
    return contract.PART_IDLE
