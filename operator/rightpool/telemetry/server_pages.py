"""The pages of servers: what is asked for, what one page says, and what came between two pages of the same replica."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from rightpool.planning.jobs.job import JobKey
from rightpool.profiles.answers import PageProblem
from rightpool.profiles.demand import Demanded
from rightpool.profiles.sample import RevisionKey
from rightpool.profiles.served import ServedWindow, ServerCounts, window_of
from rightpool.telemetry.exposition import Series
from rightpool.telemetry.sources.servers.dialect import ServerDialect
from rightpool.telemetry.sources.servers.dialects import DIALECTS, spoken

KNOWN: Final = frozenset[str]().union(*(one.metrics for one in DIALECTS))
"""The series of all dialects."""
_READINGS_IN_GAP: Final = 4
_SHORTEST_GAP: Final = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class PageFailure:
    """What is wrong with the page of a replica."""

    problem: PageProblem
    """Its kind."""
    detail: str
    """For a human: what was found, no sentence."""
    pods: int = 1
    """How many replicas it is so of."""


class BadServerPage(Exception):
    """The page says nothing that can be used."""

    def __init__(self, problem: PageProblem, detail: str) -> None:
        super().__init__(detail)
        self.failure = PageFailure(problem, detail)


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """A Revision of a server to be read."""

    key: RevisionKey
    """Which one it is."""
    pods: tuple[tuple[str, str], ...]
    """Name and IP of each pod that takes requests."""
    port: int
    """Where its page is."""
    path: str
    """Likewise."""
    dialect: ServerDialect | None
    """What its page must be written in; None for any."""
    interval: float
    """Seconds between two readings."""


@dataclass(frozen=True, slots=True)
class ServerReading:
    """What one reading of all servers gave."""

    windows: Mapping[RevisionKey, ServedWindow] = field(default_factory=dict)
    """What came since the reading before. Absent where no replica was read twice."""
    dialects: Mapping[RevisionKey, ServerDialect] = field(default_factory=dict)
    """What their pages are written in."""
    failures: Mapping[RevisionKey, PageFailure] = field(default_factory=dict)
    """What most of their replicas that can't be read have in common."""
    up: bool = True
    """Whether anything could be read at all."""


PastDemand = Mapping[Demanded, Mapping[int, float]]
"""Counts by slot of the record."""


class ServerReader(Protocol):
    """Reads all servers at once. Blocks, for a bounded time, and never raises."""

    def read_servers(self, targets: Sequence[ServerTarget], now: float) -> ServerReading:
        """now: Unix seconds."""
        ...

    def past(self, key: JobKey, dialect: ServerDialect, begin: float, end: float) -> PastDemand:
        """What is still known of a server's demand between two moments."""
        ...


class ReplicaPod(NamedTuple):
    """A pod of a Revision. The address is part of it: a pod that was replaced under its name has new counters."""

    key: RevisionKey
    """Which Revision it is of."""
    pod: str
    """Its name."""
    address: str
    """Its IP."""


@dataclass(frozen=True, slots=True)
class ServerPage:
    """What one replica's page says."""

    at: float
    """Seconds, on a clock that only moves forward."""
    dialect: ServerDialect
    """What it is written in."""
    counts: ServerCounts
    """Since it started."""


def page_of_series(series: Sequence[Series], wanted: ServerDialect | None, at: float) -> ServerPage:
    """The page that these are on. Raises BadServerPage where it is not as wanted, or of no known server."""
    names = {one.metric for one in series}
    if wanted is not None and wanted.speaks(names):
        return ServerPage(at, wanted, wanted.counts(series))
    found = spoken(names)
    if found is None:
        needed = "of a known server" if wanted is None else f"named {wanted.requires[0]}"
        raise BadServerPage(PageProblem.NO_DIALECT, f"the page has no series {needed}")
    if wanted is not None:
        raise BadServerPage(PageProblem.OTHER_DIALECT, f"the page is {found.name}'s, not {wanted.name}'s")
    return ServerPage(at, found, found.counts(series))


class ReplicaPages:
    """The newest page of each replica, and what came since the one before."""

    def __init__(self) -> None:
        self._last: dict[ReplicaPod, ServerPage] = {}
        self._until: dict[ReplicaPod, float] = {}  # when what is remembered of it is of no use any more

    def take(
        self,
        targets: Iterable[ServerTarget],
        pages: Mapping[ReplicaPod, ServerPage],
        failures: Mapping[ReplicaPod, PageFailure],
        now: float,
        clock: float,
    ) -> ServerReading:
        """The reading that these pages make. now: Unix seconds, clock: the same moment as the pages have it."""
        self._forget(clock)
        wrong: dict[RevisionKey, list[PageFailure]] = defaultdict(list)
        for replica, failure in failures.items():
            wrong[replica.key].append(failure)
        windows: dict[RevisionKey, ServedWindow] = {}
        dialects: dict[RevisionKey, ServerDialect] = {}
        for target in targets:
            longest = max(_READINGS_IN_GAP * target.interval, _SHORTEST_GAP)
            fresh: list[tuple[ReplicaPod, ServerPage]] = []
            for pod, address in target.pods:
                replica = ReplicaPod(target.key, pod, address)
                page = pages.get(replica)
                if page is not None and clock - page.at > longest:
                    detail = f"pod {pod}: its last scrape is {clock - page.at:.0f} seconds old"
                    wrong[target.key].append(PageFailure(PageProblem.UNREACHABLE, detail))
                elif page is not None:
                    fresh.append((replica, page))
                    dialects.setdefault(target.key, page.dialect)
            if any((last := self._last.get(replica)) is not None and page.at <= last.at for replica, page in fresh):
                continue  # of one the same scrape again: the others wait for it, so that the window is of all of them
            grown: list[tuple[float, ServerCounts]] = []
            newest = -math.inf
            for replica, page in fresh:
                before = self._last.get(replica)
                self._last[replica], self._until[replica] = page, clock + longest
                if before is None or before.dialect is not page.dialect or page.at - before.at > longest:
                    continue
                since = page.counts.since(before.counts)
                if since is None:
                    detail = f"pod {replica.pod} counts from 0 again"
                    wrong[target.key].append(PageFailure(PageProblem.STARTED_ANEW, detail))
                    continue
                grown.append((page.at - before.at, since))
                newest = max(newest, page.at)
            window = window_of(grown, now + (newest - clock), len(target.pods))
            if window is not None:
                windows[target.key] = window
        return ServerReading(windows, dialects, {key: _commonest(each) for key, each in wrong.items()})

    def _forget(self, clock: float) -> None:
        for replica in [replica for replica, until in self._until.items() if until < clock]:
            del self._last[replica], self._until[replica]


def _commonest(failures: Sequence[PageFailure]) -> PageFailure:
    [(problem, pods)] = Counter(one.problem for one in failures).most_common(1)
    return PageFailure(problem, next(one.detail for one in failures if one.problem is problem), pods)
