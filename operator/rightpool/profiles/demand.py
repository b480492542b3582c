"""The demand of a server: what came in each 15 seconds of the last seven days.

Of the last day each count is kept, of the days before four numbers of each five minutes. Put in order again, they rise
to the highest count and fall: bursts last, and counts in no order would ask for too little. On a public trace of two
weeks the replicas that a replay asks for are 0.8% too few at 1% late and 0.3% at 0.1%; in no order 2 and 3%.
What was not seen is unknown, which is not none.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from rightpool.profiles.loads import Loads
from rightpool.profiles.served import RequestCounter, ServedWindow

SLOT: Final = 15.0
"""Seconds of a count."""
DAY: Final = 5_760
"""Counts of a day."""
DAYS: Final = 7

_BLOCK: Final = 20  # counts of five minutes
_FINE: Final = DAY // _BLOCK + 1  # blocks of which each count is kept: a day, and the one that has begun
_COARSE: Final = (DAYS - 1) * DAY // _BLOCK
_LEAST_KNOWN: Final = 10  # counts of a block that stand for all of it
_COVERED: Final = 0.8  # share of a slot that must have been seen for its count to be known
# Where the counts of a block, in ascending order, lie in time.
_ORDER: Final = np.array([*range(0, _BLOCK, 2), *range(_BLOCK - 1, 0, -2)])
_FORMAT: Final = "1"
_LOADS: Final = "loads.json"  # the name of what batches took, where it is stored

Counts = npt.NDArray[np.float64]


class Demanded(StrEnum):
    """What comes in. The value is its name where it is stored."""

    REQUESTS = "requests"
    TOKENS_IN = "tokensIn"
    TOKENS_OUT = "tokensOut"


COUNTERS: Final[Mapping[Demanded, RequestCounter]] = {
    Demanded.REQUESTS: RequestCounter.REQUESTS,
    Demanded.TOKENS_IN: RequestCounter.TOKENS_IN,
    Demanded.TOKENS_OUT: RequestCounter.TOKENS_OUT,
}
"""Where each of them is counted."""


class _Track:
    """The counts of one thing that comes in, up to the block `head`."""

    def __init__(self) -> None:
        self.head: int | None = None
        self.fine = np.full((_FINE, _BLOCK), np.nan, dtype=np.float32)
        self.coarse = np.full((_COARSE, 4), np.nan, dtype=np.float32)  # mean, 90%, 99%, highest
        self._slot: int | None = None  # the one that is not over
        self._amount = 0.0
        self._seen = 0.0  # seconds of it

    def add(self, begin: float, end: float, amount: float) -> None:
        """So much came, evenly between two moments. Times only go forward; what is earlier is left out."""
        first, last = math.floor(begin / SLOT), math.floor(end / SLOT)
        for slot in range(first, last + 1):
            if self._slot is not None and slot < self._slot:
                continue
            if slot != self._slot:
                self._close()
                self._slot, self._amount, self._seen = slot, 0.0, 0.0
            part = min(end, (slot + 1) * SLOT) - max(begin, slot * SLOT)
            self._amount += amount * part / (end - begin)
            self._seen += part

    def _close(self) -> None:
        if self._slot is not None and self._seen >= _COVERED * SLOT:
            self.put(self._slot, self._amount * SLOT / self._seen)

    def put(self, slot: int, count: float) -> None:
        """The count of a slot of the last day."""
        block = slot // _BLOCK
        self.advance(block)
        assert self.head is not None
        if block > self.head - _FINE:
            self.fine[block % _FINE, slot % _BLOCK] = count

    def advance(self, block: int) -> None:
        """Make room for a block; what is a day old is made coarse."""
        if self.head is None:
            self.head = block
        if block - self.head >= _FINE + _COARSE:
            self.fine[:], self.coarse[:] = np.nan, np.nan
            self.head = block
        while self.head < block:
            self.head += 1
            row = self.fine[self.head % _FINE]
            self.coarse[(self.head - _FINE) % _COARSE] = _coarse(row)
            row[:] = np.nan

    def counts(self, now: float) -> Counts:
        """Of the seven days before, by slot; NaN where it is unknown."""
        newest = math.floor(now / SLOT)  # the first that is not over
        found = np.full(DAYS * DAY, np.nan)
        if self.head is None:
            return found
        start = newest - DAYS * DAY
        first = max(start // _BLOCK, self.head - _FINE - _COARSE + 1)
        blocks = np.arange(first, self.head + 1)
        rows = self.fine[blocks % _FINE].astype(np.float64)
        old = blocks <= self.head - _FINE
        rows[old] = _in_time(self.coarse[blocks[old] % _COARSE].astype(np.float64))
        at = first * _BLOCK - start
        low, high = max(at, 0), min(at + rows.size, len(found))
        if low < high:
            found[low:high] = rows.ravel()[low - at : high - at]
        return found


class DemandRecord:
    """What came in. Extended by the windows of readings, in their order."""

    def __init__(self) -> None:
        self.loads = Loads()
        """What its batches took."""
        self._tracks: dict[Demanded, _Track] = {}

    def extend(self, window: ServedWindow) -> None:
        """What a window says that is complete. Another one leaves a gap."""
        if not window.complete or window.seconds <= 0:
            return
        for demanded, counter in COUNTERS.items():
            amount = window.counts.counters.get(counter)
            if amount is not None:
                self._track(demanded).add(window.at - window.seconds, window.at, amount)

    def fill(self, demanded: Demanded, counts: Mapping[int, float]) -> None:
        """Counts by slot (Unix seconds ÷ 15), as a store of series has them. What is known stays."""
        track = self._track(demanded)
        known = track.counts((max(counts, default=0) + 1) * SLOT)
        first = max(counts, default=0) + 1 - len(known)
        for slot in sorted(counts):
            if slot >= first and np.isnan(known[slot - first]):
                track.put(slot, counts[slot])

    def counts(self, now: float, demanded: Demanded = Demanded.REQUESTS) -> Counts:
        """Of each 15 s of the last seven days, the oldest first; NaN where it is unknown."""
        track = self._tracks.get(demanded)
        return np.full(DAYS * DAY, np.nan) if track is None else track.counts(now)

    def tokens_each(self, now: float) -> float:
        """Of an answer, in the mean of the last seven days; NaN where that is unknown."""
        requests, tokens = self.counts(now), self.counts(now, Demanded.TOKENS_OUT)
        known = ~np.isnan(requests + tokens)
        whole = float(requests[known].sum())
        return float(tokens[known].sum()) / whole if whole > 0.0 else math.nan

    def seconds(self, now: float) -> float:
        """Of the last seven days, those of which the requests are known."""
        return SLOT * float(np.count_nonzero(~np.isnan(self.counts(now))))

    def newest(self, now: float) -> float | None:
        """Unix seconds of the end of the last count that is known; None where none is, of the last seven days."""
        known = np.flatnonzero(~np.isnan(self.counts(now)))
        return None if not len(known) else (math.floor(now / SLOT) - DAYS * DAY + int(known[-1]) + 1) * SLOT

    def peak(self, now: float, within: float | None = None) -> float | None:
        """The most requests a second of any 15 s. within: seconds around this time of day, on each of the seven days;
        None: of all of them. None where nothing is known of it."""
        counts = self.counts(now)
        if within is not None:
            age = (len(counts) - 0.5 - np.arange(len(counts))) * SLOT
            apart = np.abs((age + DAY * SLOT / 2) % (DAY * SLOT) - DAY * SLOT / 2)
            counts = counts[apart <= within]
        return None if np.isnan(counts).all() else float(np.nanmax(counts)) / SLOT

    def stored(self) -> dict[str, bytes]:
        """As it is stored: of each thing that comes in a text, compressed by gzip."""
        tracks = {f"{demanded}.gz": _packed(each) for demanded, each in self._tracks.items() if each.head is not None}
        return tracks | ({_LOADS: self.loads.stored()} if self.loads.known else {})

    @classmethod
    def read(cls, stored: Mapping[str, bytes]) -> DemandRecord:
        """What was stored. Raises ValueError where it can't be read."""
        record = cls()
        for demanded in Demanded:
            packed = stored.get(f"{demanded}.gz")
            if packed is not None:
                record._tracks[demanded] = _unpacked(packed)
        if _LOADS in stored:
            record.loads = Loads.read(stored[_LOADS])
        return record

    def _track(self, demanded: Demanded) -> _Track:
        return self._tracks.setdefault(demanded, _Track())


def _coarse(row: npt.NDArray[np.float32]) -> tuple[float, float, float, float]:
    known = row[~np.isnan(row)]
    if len(known) < _LEAST_KNOWN:
        return (math.nan,) * 4
    high, higher = np.quantile(known, (0.9, 0.99))
    return float(known.mean()), float(high), float(higher), float(known.max())


def _in_time(rows: Counts) -> Counts:
    """The counts of blocks again: their means, their three highest as the quantiles have them, in a likely order."""
    mean, high, higher, highest = rows.T
    second = np.minimum(np.maximum((higher - 0.81 * highest) / 0.19, high), highest)
    third = np.minimum(np.maximum((high - 0.1 * second) / 0.9, 0.0), second)
    rest = _BLOCK - 3
    middle = np.maximum(mean * _BLOCK - highest - second - third, 0.0) / rest
    reach = np.maximum(np.minimum(third - middle, middle), 0.0)
    rising = middle[:, np.newaxis] + reach[:, np.newaxis] * np.linspace(-1, 1, rest)
    ascending = np.column_stack((rising, third, second, highest))
    found: Counts = ascending[:, _ORDER]
    return found


def _packed(track: _Track) -> bytes:
    assert track.head is not None
    lines = [f"{_FORMAT} {track.head}"]
    for block in range(track.head - _FINE + 1, track.head + 1):
        lines.append(_line(track.fine[block % _FINE]))
    for block in range(track.head - _FINE - _COARSE + 1, track.head - _FINE + 1):
        lines.append(_line(track.coarse[block % _COARSE]))
    return gzip.compress("\n".join(lines).encode(), 6, mtime=0)


def _line(row: npt.NDArray[np.float32]) -> str:
    """Four digits of each number. A dot is unknown."""
    return " ".join("." if math.isnan(one) else f"{one:.4g}" for one in row.tolist())


def _unpacked(packed: bytes) -> _Track:
    try:
        lines = gzip.decompress(packed).decode().split("\n")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ValueError(f"it is not compressed by gzip: {error}") from None
    head = lines[0].split()
    if len(head) != 2 or head[0] != _FORMAT or len(lines) != 1 + _FINE + _COARSE:
        raise ValueError("it is no record of demand")
    track = _Track()
    track.head = int(head[1])
    for table, block, rows in (
        (track.fine, track.head - _FINE + 1, lines[1 : 1 + _FINE]),
        (track.coarse, track.head - _FINE - _COARSE + 1, lines[1 + _FINE :]),
    ):
        for each in rows:
            row = [math.nan if one == "." else float(one) for one in each.split(" ")]
            if len(row) != table.shape[1]:
                raise ValueError("a line of it has another number of counts")
            table[block % len(table)] = row
            block += 1
    return track
