"""ProfiledJobs as they are stored, for commands that need no more, and start the quicker for it."""

from __future__ import annotations

import argparse
import queue
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from rightpool.api.wording import meant
from rightpool.cli.connection import CliError, is_namespace
from rightpool.cluster.client import ClusterClient, Listing
from rightpool.cluster.errors import ClusterError, Expired, NotFound
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import GROUP, VERSION

if TYPE_CHECKING:
    from rightpool.api.kubernetes import Resource
    from rightpool.planning.jobs.job import JobKey
    from rightpool.reporting.stored_job import StoredJob

_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_KINDS: Final = frozenset({"pj", "profiledjob", "profiledjobs"})


class JobLister(Protocol):
    """The part of ClusterClient that is used."""

    def pages(self, resource: Resource, namespace: str | None = None) -> Iterator[Listing]: ...


class JobReading:
    """A list that is asked for at once, in a thread of its own: the API server makes its pages while the modules that
    read them are loaded, and each while the one before is read."""

    def __init__(self, client: JobLister, namespace: str | None) -> None:
        """namespace: None for all."""
        self._client = client
        self._namespace = namespace
        self._coming = self._ask()

    def jobs(self) -> Mapping[JobKey, StoredJob]:
        """All of them. Raises ClusterError."""
        try:
            return self._read()
        except Expired:  # while one page was awaited, that from which the others follow was forgotten
            self._coming = self._ask()
            return self._read()

    def _ask(self) -> queue.SimpleQueue[Listing | Exception | None]:
        coming: queue.SimpleQueue[Listing | Exception | None] = queue.SimpleQueue()

        def fetch() -> None:
            try:
                for page in self._client.pages(PROFILED_JOBS, self._namespace):
                    coming.put(page)
                coming.put(None)
            except Exception as error:  # raised where the page is waited for
                coming.put(error)

        # A daemon, so that ctrl-C waits for no answer.
        threading.Thread(target=fetch, daemon=True).start()
        return coming

    def _read(self) -> Mapping[JobKey, StoredJob]:
        from rightpool.api.status import ProfiledJobStatus
        from rightpool.reporting.stored_job import read_job

        ProfiledJobStatus.from_dict({})  # pydantic makes its validators on first use, which takes a tenth of a second
        jobs = {}
        while (page := self._coming.get()) is not None:
            if isinstance(page, Exception):
                raise page
            for body in page.items:
                stored = read_job(body, once=True)
                jobs[stored.job.key] = stored
        return jobs


def stored_jobs(client: JobLister, namespace: str | None) -> Mapping[JobKey, StoredJob]:
    """The ProfiledJobs of a namespace, of all if None. Raises ClusterError."""
    return JobReading(client, namespace).jobs()


def stored_job(client: ClusterClient, key: JobKey) -> StoredJob:
    """One ProfiledJob. Raises CliError where there is none, and ClusterError."""
    from rightpool.reporting.stored_job import read_job

    try:
        return read_job(client.get(PROFILED_JOBS, key.name, key.namespace))
    except NotFound as error:
        if "could not find the requested resource" in error.message:
            raise  # of the kind itself
        raise missing_job(client, key) from error


def missing_job(client: ClusterClient, key: JobKey) -> CliError:
    """That a job is not there, and what may have been meant, by the jobs that the user may list."""
    there = _there(client, key.namespace)
    if there is None:
        return CliError(f"there is no ProfiledJob {key.name} in namespace {key.namespace}")
    return CliError(missing_job_text(key, there))


def _there(client: ClusterClient, namespace: str) -> list[JobKey] | None:
    """The jobs that the user may list: of all namespaces, else of this one; None where none can be."""
    from rightpool.planning.jobs.job import JobKey

    for where in (None, namespace):
        try:
            found = [body["metadata"] for body in client.list_all(PROFILED_JOBS, where)]
        except ClusterError:
            continue
        return [JobKey(meta["namespace"], meta["name"]) for meta in found]
    return None


def missing_job_text(key: JobKey, there: Iterable[JobKey]) -> str:
    """That a job is not there, and what may have been meant. there: jobs that are."""
    there = sorted(there)
    elsewhere = [other.namespace for other in there if other.name == key.name]
    missing = f"there is no ProfiledJob {key.name} in namespace {key.namespace}"
    if elsewhere:
        return f"{missing}; there is one in {', '.join(elsewhere)}: add -n {elsewhere[0]}"
    here = [other.name for other in there if other.namespace == key.namespace]
    if near := meant(key.name, here):
        return missing + near
    if here:
        return f"{missing}; there are: {', '.join(here[:10])}"
    return f"{missing}, and no other" + ("; `rightpool top -A` lists all" if there else "")


def no_jobs_text(namespace: str | None) -> str:
    """That there are no jobs. namespace: None for all."""
    where = "this cluster" if namespace is None else f"namespace {namespace}; -A looks in all"
    return f"there are no ProfiledJobs in {where}"


def add_job_argument(parser: argparse.ArgumentParser, default: str = "", *, several: bool = False) -> None:
    """The ProfiledJob that a command is about. default: what it is about without one; empty where one is needed.
    several: it may be about many, or none."""
    text = "a ProfiledJob: NAME, NAMESPACE/NAME or pj/NAME"
    number = "*" if several else "?" if default else None
    parser.add_argument("name", nargs=number, help=f"{text}; default: {default}" if default else text)


def job_key(text: str, namespace: str) -> JobKey:
    """NAME, NAMESPACE/NAME, or as kubectl names it: pj/NAME, profiledjob.rightpool.dev/NAME. Raises CliError."""
    from rightpool.planning.jobs.job import JobKey

    first, _, name = text.rpartition("/")
    kind = first.lower().removesuffix(f".{GROUP}").removesuffix(f".{VERSION}")
    space = namespace if not first or kind in _KINDS else first
    if _NAME.fullmatch(name) is None or not is_namespace(space):
        raise CliError(f"{text!r} is not the name of a ProfiledJob: write NAME or NAMESPACE/NAME")
    return JobKey(space, name)
