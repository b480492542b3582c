"""ProfiledJobs as they are stored, in one list: for commands that need no more, and start the quicker for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from typing import Protocol

from rightpool.api.kubernetes import Resource
from rightpool.api.status import ProfiledJobStatus
from rightpool.cluster.client import Listing
from rightpool.cluster.errors import Expired
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.planning.job import JobKey
from rightpool.reporting.stored_job import StoredJob, read_job


class JobLister(Protocol):
    """The part of ClusterClient that is used."""

    def pages(self, resource: Resource, namespace: str | None = None) -> Iterator[Listing]: ...


def stored_jobs(client: JobLister, namespace: str | None) -> Mapping[JobKey, StoredJob]:
    """The ProfiledJobs of a namespace, of all if None."""
    try:
        return _read(client, namespace)
    except Expired:  # while one page was awaited, that from which the others follow was forgotten
        return _read(client, namespace)


def _read(client: JobLister, namespace: str | None) -> Mapping[JobKey, StoredJob]:
    """Jobs are read while the API server makes the next page: of the time for a thousand, each takes about half."""
    coming: queue.SimpleQueue[Listing | Exception | None] = queue.SimpleQueue()

    def fetch() -> None:
        try:
            for page in client.pages(PROFILED_JOBS, namespace):
                coming.put(page)
            coming.put(None)
        except Exception as error:  # raised where the page is waited for
            coming.put(error)

    # A daemon, so that ctrl-C waits for no answer.
    threading.Thread(target=fetch, daemon=True).start()
    ProfiledJobStatus.from_dict({})  # pydantic makes its validators on first use, which takes a tenth of a second
    jobs = {}
    while (page := coming.get()) is not None:
        if isinstance(page, Exception):
            raise page
        for body in page.items:
            stored = read_job(body, once=True)
            jobs[stored.job.key] = stored
    return jobs
