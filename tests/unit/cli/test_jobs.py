"""Reading ProfiledJobs in pages."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import pytest

from rightpool.api.kubernetes import Resource
from rightpool.cli import history, recommend
from rightpool.cli.connection import CliError, Connection
from rightpool.cli.jobs import stored_job, stored_jobs
from rightpool.cluster.client import Listing
from rightpool.cluster.errors import Expired, Forbidden, NotFound
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.planning.jobs.job import JobKey
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


def missing(client: FakeClient, name: str, namespace: str = "vision") -> str:
    with pytest.raises(CliError) as error:
        stored_job(client, JobKey(namespace, name))  # type: ignore[arg-type]
    return str(error.value)


def test_of_a_job_that_is_not_there_it_is_said_what_may_be_meant() -> None:
    client = three(Paged())
    client.add(PROFILED_JOBS, job("bert", "language"))
    assert (
        missing(client, "bert")
        == "there is no ProfiledJob bert in namespace vision; there is one in language: add -n language"
    )
    assert missing(client, "bret", "language").endswith("; did you mean bert?")
    assert missing(client, "gpt").endswith("; there are: a, b, c")
    assert missing(client, "gpt", "empty").endswith(", and no other; `rightpool top -A` lists all")
    client.forbidden.add(PROFILED_JOBS)
    assert missing(client, "bert").endswith("; there are: a, b, c"), "who may not look elsewhere is told of here"
    assert missing(client, "gpt", "empty").endswith("namespace empty, and no other"), "nor told to"
    assert missing(Unlisted(), "gpt").endswith("namespace vision"), "who may list none does not know of others"
    with pytest.raises(NotFound):  # the definitions are not installed
        stored_job(Uninstalled(), JobKey("vision", "a"))  # type: ignore[arg-type]


def test_history_says_where_a_job_of_this_name_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = three(Paged())
    client.add(PROFILED_JOBS, job("bert", "language"))
    monkeypatch.setattr(history, "carry_out", lambda arguments, name, work: work(Connection(client, "vision")) or 0)  # type: ignore[arg-type]
    parser = argparse.ArgumentParser()
    history.add_arguments(parser)
    with pytest.raises(CliError, match="there is one in language: add -n language"):
        history.run(parser.parse_args(["bert"]))


class Unlisted(FakeClient):
    """Jobs may be read by name only."""

    def list_all(self, resource: Resource, namespace: str | None = None, **_: Any) -> list[Body]:
        raise Forbidden("no", status=403)


class Uninstalled(FakeClient):
    """A cluster without Rightpool's resources."""

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Body:
        raise NotFound("the server could not find the requested resource", status=404)


@pytest.mark.parametrize("command", [recommend, history])
def test_where_there_are_no_jobs_none_is_called_well(
    command: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    connection = Connection(Paged(), "vision")  # type: ignore[arg-type]
    monkeypatch.setattr(command, "carry_out", lambda arguments, name, work: work(connection) or 0)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.run(parser.parse_args([])) == 0
    assert capsys.readouterr().out == "there are no ProfiledJobs in namespace vision; -A looks in all\n"
