"""Reading ProfiledJobs in pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rightpool.api.kubernetes import Resource
from rightpool.cli.jobs import stored_jobs
from rightpool.cluster.client import Listing
from rightpool.cluster.errors import Expired, Forbidden
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.reporting.stored_job import read_job
from tests.unit.cli.cluster import FakeClient, job
from tests.unit.cli.test_top import recommended

Body = dict[str, Any]


class Paged(FakeClient):
    """Gives one job a page; `fails` is raised behind the first page, as often as `times`."""

    def __init__(self, fails: Exception | None = None, times: int = 0) -> None:
        super().__init__()
        self._fails = fails
        self._times = times

    def pages(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> Iterator[Listing]:
        bodies = self.list_all(resource, namespace)
        for number, body in enumerate(bodies):
            if number and self._fails is not None and self._times:
                self._times -= 1
                raise self._fails
            yield Listing([body], "1", "more" if number + 1 < len(bodies) else "")


def three(client: Paged) -> Paged:
    for name in ("a", "b", "c"):
        client.add(PROFILED_JOBS, job(name, status=recommended()))
    return client


def test_every_page_is_read() -> None:
    client = three(Paged())
    found = stored_jobs(client, "vision")
    assert [key.name for key in found] == ["a", "b", "c"]
    assert stored_jobs(client, "empty") == {}
    for body in client.objects[PROFILED_JOBS]:
        kept, packed = found[read_job(body).job.key], read_job(body)
        assert (kept.job, kept.status, kept.status_body) == (packed.job, packed.status, packed.status_body)


def test_a_list_that_expires_is_begun_anew_once() -> None:
    assert len(stored_jobs(three(Paged(Expired("too old", status=410), 1)), None)) == 3
    with pytest.raises(Expired):
        stored_jobs(three(Paged(Expired("too old", status=410), 2)), None)


def test_what_the_server_refuses_is_raised() -> None:
    with pytest.raises(Forbidden):
        stored_jobs(three(Paged(Forbidden("no", status=403), 1)), None)
