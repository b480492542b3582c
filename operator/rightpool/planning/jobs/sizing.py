"""What the record of a server says of its size: the peak that its replicas are for, and what one of them can take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rightpool.api.status import PlaceSize
from rightpool.api.units import HOUR
from rightpool.planning.jobs.time_limits import Limits
from rightpool.prediction.tokens import ServerLine, TokenLines
from rightpool.profiles.served import RequestTime

SHORTEST: Final = HOUR
"""Seconds of demand without which nothing is sized."""
BARS: Final = "▁▂▃▄▅▆▇█"
"""Of a week's picture; the last one is its peak."""
SURE_TO_HOLD: Final = 0.9
"""Probability with which the limit must be kept."""
FEWER: Final = 0.95
"""Replicas are given up where fewer would take the peak by that share of what each can, so that none go to and fro."""
UNHELD: Final = 0.5
"""Share of full batches at which a server runs whose limit nothing keeps."""


@dataclass(frozen=True, slots=True)
class Servable:
    """Requests a second of one replica at the peak, with the limit kept."""

    at_least: float
    """As surely as it must be kept; 0 where it is not, however little comes."""
    at_most: float
    """With one chance in ten."""
    chance: float
    """Probability that it is kept with `at_least`, or with hardly any requests where that is 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Sizing:
    """Made anew each quarter of an hour, and the very object of before while it says the same."""

    targets: Limits
    """What it is for."""
    place: str
    """Where the server runs, as `Loads` names it."""
    recorded: float
    """Seconds of the last week in which requests were counted."""
    peak: float | None
    """Requests a second that the replicas are for: the most of any 15 s within an hour of this time of day, of the last
    week. None where too little is recorded, or nothing of these hours."""
    week: str = ""
    """The peaks of each three hours of the record, the oldest first, as a row of bars; a dot where nothing is known."""
    line: ServerLine | None = None
    """Seconds of its batches or tokens; None where the server does not tell them, or nothing was seen."""
    servable: Servable | None = None
    """None while that is not known."""
    places: tuple[PlaceSize, ...] = ()
    """What it would be in each pool whose chips are known, here included; empty while that is not known."""

    def at(self, pool: str) -> PlaceSize | None:
        """In one pool; None where that is not known."""
        return next((one for one in self.places if one.pool == pool), None)

    @property
    def cache_known(self) -> bool:
        """Whether it is known how many requests its key-value cache holds."""
        return isinstance(self.line, TokenLines) and math.isfinite(self.line.held)

    @property
    def silent(self) -> bool:
        """Whether no request came in all that is recorded."""
        return self.recorded >= SHORTEST and bool(self.week) and BARS[-1] not in self.week

    @property
    def alone(self) -> Mapping[RequestTime, float]:
        """Seconds that one request by itself takes, of each time that is known and has a limit."""
        if isinstance(self.line, TokenLines):
            of = {RequestTime.FIRST_TOKEN: self.line.first, RequestTime.BETWEEN_TOKENS: self.line.between}
        else:
            of = {RequestTime.WHOLE: self.line}
        return {time: line.seconds(1.0) for time, line in of.items() if line is not None and time in self.targets}

    @property
    def too_slow(self) -> RequestTime | None:
        """The time of which one request by itself takes longer than its limit; None where none does."""
        over = (time for time, seconds in self.alone.items() if seconds > self.targets[time].seconds)
        return next(over, None)

    @property
    def rate(self) -> float | None:
        """Requests a second that each replica is to get at the peak; None where nothing tells."""
        if self.line is None or self.servable is None:
            return None
        return self.servable.at_least if self.servable.at_least > 0.0 else UNHELD * self.line.capacity

    def needed(self, now: int) -> int | None:
        """Replicas, whatever is allowed; as many as there are now where fewer would hardly do. None where nothing
        tells."""
        if self.silent:
            return 1
        if self.peak is None or self.rate is None:
            return None
        needed = max(math.ceil(self.peak / self.rate), 1)
        if needed < now:
            needed = min(max(math.ceil(self.peak / (FEWER * self.rate)), 1), now)
        return needed

    def same_as(self, other: Sizing) -> bool:
        """Whether both say the same, but for what never matters."""
        return (
            (self.targets, self.place, self.servable, self.places, self.week)
            == (other.targets, other.place, other.servable, other.places, other.week)
            and _near(self.peak, other.peak)
            and (self.line is None) == (other.line is None)
            and round(self.recorded / 3600.0) == round(other.recorded / 3600.0)
        )


def _near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= 0.02 * abs(other)
