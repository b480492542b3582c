"""Samples from the sidecars themselves, where no Prometheus reads them.

For small fleets and development: every cycle asks every pod. The fields and their aggregates are the same as those
that come through Prometheus.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rightpool import contract
from rightpool.pod_client import PodClient, PodRequest, RequestFailed
from rightpool.profiles.sample import RevisionKey
from rightpool.telemetry.exposition import BadPage, parse
from rightpool.telemetry.reader import Target, TelemetryReading, summarised
from rightpool.telemetry.samples import sample_of
from rightpool.telemetry.sources.sidecar_page import PodPage, page_of, reading_of

LARGEST_PAGE: Final = 2**20  # bytes
_HEADERS: Final = {"Accept": "text/plain"}
_READINGS_IN_GAP: Final = 4
_SHORTEST_GAP: Final = 10.0  # seconds


@dataclass(frozen=True, slots=True)
class _Pod:
    """A pod of a Revision. The address is part of it: a pod that was replaced under its name has new counters."""

    key: RevisionKey
    name: str
    address: str


class ScrapeReader:
    """Reads Revisions from their sidecars.

    timeout: seconds for one pod. budget: seconds for one reading; pods that it did not reach come first in the next.
    clock: seconds, only forward. Used by one thread at a time.
    """

    def __init__(
        self,
        *,
        port: int = contract.SIDECAR_PORT,
        timeout: float = 2.0,
        budget: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = PodClient("scrape", port=port, seconds=timeout, largest_body=LARGEST_PAGE)
        self._budget = budget
        self._clock = clock
        self._last: dict[_Pod, PodPage] = {}
        self._tried: dict[_Pod, float] = {}
        self._until: dict[_Pod, float] = {}  # when what is remembered of a pod is of no use any more

    def close(self) -> None:
        """Returns at once. Requests under way end by their timeout."""
        self._client.close()

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        """One reading of all targets."""
        started = self._clock()
        pods = {_Pod(target.key, name, ip): target for target in targets for name, ip in target.pods if ip}
        self._forget(started)
        self._until.update((pod, started + _longest_gap(target.interval)) for pod, target in pods.items())
        pages, failures = self._fetch(pods)
        by_revision: dict[RevisionKey, list[_Pod]] = defaultdict(list)
        for pod in pages:
            by_revision[pod.key].append(pod)
        samples = {}
        for key, own in by_revision.items():
            newest = max(pages[pod].at for pod in own)
            longest = _longest_gap(max(pods[pod].interval for pod in own))
            pairs = [(self._last.get(pod), pages[pod]) for pod in own]
            sample = sample_of((reading_of(pairs, now + (newest - started), longest),))
            if sample is not None:
                samples[key] = sample
        self._last.update(pages)
        # There is nothing in between that could be down: a pod that does not answer is that job's trouble alone.
        return TelemetryReading(samples, summarised(failures), up=True)

    def _forget(self, now: float) -> None:
        """By age, not by whether it is asked for: not every reading is about every job."""
        for pod in [pod for pod, until in self._until.items() if until < now]:
            for memory in (self._last, self._tried, self._until):
                memory.pop(pod, None)

    def _fetch(self, pods: Mapping[_Pod, Target]) -> tuple[dict[_Pod, PodPage], list[str]]:
        """The pages that came within the budget. Those not tried for longest are asked first."""
        order = sorted(pods, key=lambda pod: self._tried.get(pod, -math.inf))
        requests = {pod: PodRequest(pod.address, contract.PATH_METRICS, headers=_HEADERS) for pod in order}
        outcomes = self._client.ask(requests, self._page, self._budget)
        self._tried.update(dict.fromkeys((*outcomes.answers, *outcomes.failures), self._clock()))
        failures = [f"pod {pod.key.namespace}/{pod.name}: {reason}" for pod, reason in outcomes.failures.items()]
        if outcomes.unfinished:
            late = len(outcomes.unfinished)
            failures.append(f"{late} of {len(pods)} pods were not read within {self._budget:g} seconds")
        return outcomes.answers, failures

    def _page(self, text: str) -> PodPage:
        try:
            return page_of(parse(text), self._clock())
        except BadPage as error:
            raise RequestFailed(str(error)) from None


def _longest_gap(interval: float) -> float:
    """Seconds between two readings beyond which the difference is no rate of now."""
    return max(_READINGS_IN_GAP * interval, _SHORTEST_GAP)
