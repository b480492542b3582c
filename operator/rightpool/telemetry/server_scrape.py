"""The pages of servers, read from their pods. Pods are not trusted: a page is bounded in size and time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from rightpool.planning.jobs.job import JobKey
from rightpool.pod_client import PodClient, PodRequest
from rightpool.profiles.answers import PageProblem
from rightpool.telemetry.exposition import BadPage, Series, parse_metrics
from rightpool.telemetry.server_pages import (
    KNOWN,
    BadServerPage,
    PageFailure,
    PastDemand,
    ReplicaPages,
    ReplicaPod,
    ServerPage,
    ServerReading,
    ServerTarget,
    page_of_series,
)
from rightpool.telemetry.sources.servers.dialect import ServerDialect

LARGEST_SERVER_PAGE: Final = 4 * 2**20  # bytes
_HEADERS: Final = {"Accept": "text/plain"}


class ServerScrape:
    """Reads the replicas of servers.

    timeout: seconds for one pod. budget: seconds for one reading; pods that it did not reach come first in the next.
    clock: seconds, only forward. Used by one thread at a time.
    """

    def __init__(
        self, *, timeout: float = 2.0, budget: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = PodClient("servers", port=0, seconds=timeout, largest_body=LARGEST_SERVER_PAGE)
        self._budget = budget
        self._clock = clock
        self._pages = ReplicaPages()
        self._tried: dict[ReplicaPod, float] = {}

    def close(self) -> None:
        """Returns at once. Requests under way end by their timeout."""
        self._client.close()

    def read_servers(self, targets: Sequence[ServerTarget], now: float) -> ServerReading:
        """One reading of all targets."""
        started = self._clock()
        replicas = {ReplicaPod(target.key, pod, ip): target for target in targets for pod, ip in target.pods if ip}
        self._tried = {replica: at for replica, at in self._tried.items() if replica in replicas}
        pages, failures = self._fetch(replicas)
        return self._pages.take(targets, pages, failures, now, started)

    def past(self, _key: JobKey, _dialect: ServerDialect, _begin: float, _end: float) -> PastDemand:
        """Nothing: pods tell what is so now."""
        return {}

    def _fetch(
        self, replicas: Mapping[ReplicaPod, ServerTarget]
    ) -> tuple[dict[ReplicaPod, ServerPage], dict[ReplicaPod, PageFailure]]:
        order = sorted(replicas, key=lambda replica: self._tried.get(replica, -math.inf))
        requests = {
            replica: PodRequest(replica.address, replicas[replica].path, headers=_HEADERS, port=replicas[replica].port)
            for replica in order
        }
        metrics = KNOWN.union(*(target.dialect.metrics for target in replicas.values() if target.dialect is not None))
        outcomes = self._client.ask(requests, lambda text: _read(text, metrics, self._clock()), self._budget)
        self._tried.update(dict.fromkeys((*outcomes.answers, *outcomes.failures), self._clock()))
        failures = {
            replica: PageFailure(PageProblem.UNREACHABLE, f"pod {replica.pod}: {reason}")
            for replica, reason in outcomes.failures.items()
        }
        late = f"it was not read within {self._budget:g} seconds"
        failures |= {replica: PageFailure(PageProblem.UNREACHABLE, late) for replica in outcomes.unfinished}
        pages: dict[ReplicaPod, ServerPage] = {}
        for replica, found in outcomes.answers.items():
            try:
                if isinstance(found, BadServerPage):
                    raise found
                series, at = found
                pages[replica] = page_of_series(series, replicas[replica].dialect, at)
            except BadServerPage as error:
                failures[replica] = error.failure
        return pages, failures


def _read(text: str, metrics: AbstractSet[str], at: float) -> tuple[list[Series], float] | BadServerPage:
    """In the thread of the request, so that the text of one page at most is in memory for each."""
    try:
        return parse_metrics(text, metrics), at
    except BadPage as error:
        return BadServerPage(PageProblem.UNREADABLE, str(error))
