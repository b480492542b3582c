"""ProfiledJobs as they are stored, in one list: for commands that need no more, and start the quicker for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from rightpool.api.kubernetes import Resource
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.planning.job import JobKey
from rightpool.reporting.stored_job import StoredJob, read_job


class JobLister(Protocol):
    """The part of ClusterClient that is used."""

    def list_all(self, resource: Resource, namespace: str | None = None) -> list[dict[str, Any]]: ...


def stored_jobs(client: JobLister, namespace: str | None) -> Mapping[JobKey, StoredJob]:
    """The ProfiledJobs of a namespace, of all if None."""
    jobs = (read_job(body) for body in client.list_all(PROFILED_JOBS, namespace))
    return {stored.job.key: stored for stored in jobs}
