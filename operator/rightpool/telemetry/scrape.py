"""Samples from the sidecars themselves, where no Prometheus reads them.

For small fleets and development: every cycle asks every pod. The fields and their aggregates are the same as those
that come through Prometheus.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final

from rightpool import contract
from rightpool.profiles.sample import Field, RevisionKey
from rightpool.telemetry.exposition import BadPage, parse
from rightpool.telemetry.fields import GAUGES, STEP_COUNT, STEP_SUM, assembled
from rightpool.telemetry.page_fetch import FetchFailed, fetch
from rightpool.telemetry.pod_page import PodPage, page_of, rates
from rightpool.telemetry.source import Target, TelemetryReading, summarised

_WORKERS: Final = 16
_READINGS_IN_GAP: Final = 4
_SHORTEST_GAP: Final = 10.0  # seconds


@dataclass(frozen=True, slots=True)
class _Pod:
    """A pod of a Revision. The address is part of it: a pod that was replaced under its name has new counters."""

    key: RevisionKey
    name: str
    address: str


class ScrapeSource:
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
        self._port = port
        self._timeout = timeout
        self._budget = budget
        self._clock = clock
        self._threads = ThreadPoolExecutor(_WORKERS, thread_name_prefix="scrape")
        self._last: dict[_Pod, PodPage] = {}
        self._tried: dict[_Pod, float] = {}
        self._until: dict[_Pod, float] = {}  # when what is remembered of a pod is of no use any more

    def close(self) -> None:
        """Lets the threads go, without waiting for those that still wait for a pod."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        """One reading of all targets."""
        started = self._clock()
        pods = {_Pod(target.key, name, ip): target for target in targets for name, ip in target.pods if ip}
        self._forget(started)
        self._until.update((pod, started + _longest_gap(target.interval)) for pod, target in pods.items())
        pages, failures = self._fetch(pods)
        by_revision: dict[RevisionKey, dict[_Pod, PodPage]] = defaultdict(dict)
        for pod, page in pages.items():
            by_revision[pod.key][pod] = page
        samples = {}
        for key, own in by_revision.items():
            newest = max(page.at for page in own.values())
            longest = _longest_gap(max(pods[pod].interval for pod in own))
            values = {Field.PODS: float(len(own)), **_gauges(own.values()), **self._rates(own, longest)}
            derived = frozenset[str]().union(*(page.derived for page in own.values()))
            samples[key] = assembled(now + (newest - started), values, derived)
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
        asked: dict[Future[PodPage], _Pod] = {self._threads.submit(self._ask, pod): pod for pod in order}
        done, late = wait(asked, timeout=self._budget)
        for future in late:
            future.cancel()
        pages: dict[_Pod, PodPage] = {}
        failures = []
        for future in done:
            pod = asked[future]
            self._tried[pod] = self._clock()
            try:
                pages[pod] = future.result()
            except (FetchFailed, BadPage) as error:
                failures.append(f"pod {pod.key.namespace}/{pod.name}: {error}")
        if late:
            failures.append(f"{len(late)} of {len(pods)} pods were not read within {self._budget:g} seconds")
        return pages, failures

    def _ask(self, pod: _Pod) -> PodPage:
        page = fetch(pod.address, self._port, contract.PATH_METRICS, self._timeout)
        return page_of(parse(page), self._clock())

    def _rates(self, pages: Mapping[_Pod, PodPage], longest: float) -> dict[Field, float]:
        """Throughput and step time. A pod that was not read twice yet has no rate; the sum of the others is not the
        job's, so then there is none."""
        totals: dict[str, list[float]] = defaultdict(list)
        expected = sum(contract.SAMPLES in page.counters for page in pages.values())
        for pod, page in pages.items():
            for metric, rate in rates(self._last.get(pod), page, longest).items():
                totals[metric].append(rate)
        found = {}
        if expected and len(totals[contract.SAMPLES]) == expected:
            found[Field.SAMPLES_PER_SECOND] = math.fsum(totals[contract.SAMPLES])
        steps = math.fsum(totals[STEP_COUNT])
        if steps > 0:
            found[Field.STEP_SECONDS] = math.fsum(totals[STEP_SUM]) / steps
        return found


def _longest_gap(interval: float) -> float:
    """Seconds between two readings beyond which the difference is no rate of now."""
    return max(_READINGS_IN_GAP * interval, _SHORTEST_GAP)


def _gauges(pages: Collection[PodPage]) -> dict[Field, float]:
    """Each gauge over the chips of each pod, then over the pods, as far as any has it."""
    found = {}
    for gauge in GAUGES:
        values = [page.gauges.get((gauge.metric, gauge.part), ()) for page in pages]
        if any(values):
            found[gauge.field] = gauge.aggregate.over(gauge.aggregate.over(chips) for chips in values if chips)
    return found
