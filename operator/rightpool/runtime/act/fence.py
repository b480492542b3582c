"""The fence: checks right before a command that the persisted status still requires it and that this process leads.

A process may be stopped for minutes between any two instructions, and continue while another one leads. So every
command that starts or ends pods is preceded by checks against the API server, not the store. docs/reliability.md counts
their requests.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Protocol

from rightpool.api.kubernetes import Resource
from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.contract import LABEL_JOB
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import Command, EnsureRevision, commands
from rightpool.planning.work.registry import work_of
from rightpool.reporting.stored_job import StoredJob, read_job
from rightpool.runtime.observe.facts import pod_facts

REQUEST_SECONDS: Final = 1.0  # the Lease must be held for at least this long when a request is sent


class Reader(Protocol):
    """The part of ClusterClient that the fence uses."""

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> dict[str, Any]: ...
    def list_all(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> list[dict[str, Any]]: ...


class Lease(Protocol):
    """The part of LeaseElector that the fence uses."""

    @property
    def transitions(self) -> int: ...
    def held_for(self, seconds: float) -> bool: ...


class Fenced(Exception):
    """A check failed and the command must not be sent. The next cycle decides on fresh state."""


class Fence:
    """Every check raises Fenced if it fails."""

    def __init__(self, client: Reader, lease: Lease) -> None:
        self._client = client
        self._lease = lease

    @property
    def term(self) -> int:
        """How often the Lease has changed its holder. While it is equal, no other process has led."""
        return self._lease.transitions

    def leader(self) -> None:
        """Check that this process is certainly leader."""
        if not self._lease.held_for(REQUEST_SECONDS):
            raise Fenced("this process does not hold the Lease any more")

    def leader_since(self, term: int) -> None:
        """Check that this process is leader and no other one has led since `term` was read.

        Then the status that this process wrote is still the persisted one.
        """
        self.leader()
        if self.term != term:
            raise Fenced("another process has led in the meantime")

    def persisted(self, job: Job, command: Command) -> StoredJob:
        """Read the job from the API server, and check that its status requires this command."""
        try:
            body = self._client.get(PROFILED_JOBS, job.key.name, job.key.namespace)
        except NotFound as error:
            raise Fenced("the ProfiledJob is gone") from error
        fresh = read_job(body)
        if fresh.job.uid != job.uid:
            raise Fenced("the ProfiledJob was recreated under the same name")
        current = replace(fresh.job, observed=job.observed, able=job.able)
        if not current.spec.managed or command not in commands(current):
            raise Fenced(f"the status does not ask for {command} any more")
        self.leader()
        return fresh

    def single_writer(self, job: Job, command: EnsureRevision, members: str | None) -> None:
        """Check that no pod of another Revision runs, where it would write to the same checkpoint.

        `members` is what pods of the Revision's child have as their owner, if it exists. Pods of an earlier child of
        that name are foreign.
        """
        if not work_of(job.spec).one_writer:
            return self.leader()
        key = job.key
        bodies = self._client.list_all(PODS, key.namespace, labels=f"{LABEL_JOB}={key.name}")
        pods = [pod for pod in map(pod_facts, bodies) if pod is not None]
        for pod in pods:
            if pod.revision is None or pod.done:
                continue
            if pod.revision != command.ref.revision or pod.owner != members:
                raise Fenced(f"pod {pod.name} of r{pod.revision} is still there")
        self.leader()
