"""The fence: is what we are about to do still what the persisted state asks for, and are we still the ones to do it?

A process may be stopped for minutes between any two instructions, and come back while another one leads. So whatever
creates, starts or ends pods asks again, of the API server and not of the store, right before it does so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Protocol

from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import PODS, PROFILED_JOBS, Resource
from rightpool.contract import LABEL_JOB
from rightpool.planning.commands import Command, EnsureRevision
from rightpool.planning.snapshot import JobKey, JobState
from rightpool.planning.transitions import commands
from rightpool.runtime.facts import PodFacts, pod_facts
from rightpool.runtime.jobs import StoredJob, read_job

REQUEST_SECONDS: Final = 1.0  # the Lease must be ours for at least that long when a request is sent


class Reader(Protocol):
    """What is needed of the cluster."""

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> dict[str, Any]: ...
    def list_all(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> list[dict[str, Any]]: ...


class Refused(Exception):
    """Not now, and maybe never; the next cycle decides on fresh state. The message is for the log."""


class Fence:
    """held_for: whether the Lease is ours for so many seconds more."""

    def __init__(self, client: Reader, held_for: Callable[[float], bool]) -> None:
        self._client = client
        self._held_for = held_for

    def leader(self) -> None:
        """Raises Refused unless we are certain to be leader."""
        if not self._held_for(REQUEST_SECONDS):
            raise Refused("the Lease is not ours any more")

    def persisted(self, job: JobState, command: Command) -> StoredJob:
        """The job as the API server has it, if its status asks for this very command. Raises Refused otherwise."""
        try:
            body = self._client.get(PROFILED_JOBS, job.key.name, job.key.namespace)
        except NotFound as error:
            raise Refused("the ProfiledJob is gone") from error
        fresh = read_job(body)
        if fresh.state.uid != job.uid:
            raise Refused("the ProfiledJob is another one of the same name")
        if not fresh.state.spec.ours or command not in commands(replace(fresh.state, revisions=job.revisions)):
            raise Refused(f"the status does not ask for {command} any more")
        self.leader()
        return fresh

    def single_writer(self, key: JobKey, command: EnsureRevision, child_uid: str | None) -> list[PodFacts]:
        """The pods of the Revision, if no pod of anything else of this job is alive. Raises Refused otherwise.

        child_uid: of the Revision's Job where it exists; pods of an earlier Job of that name are somebody else's.
        """
        bodies = self._client.list_all(PODS, key.namespace, labels=f"{LABEL_JOB}={key.name}")
        pods = [pod for pod in map(pod_facts, bodies) if pod is not None]
        for pod in pods:
            if pod.revision is None or pod.done:
                continue
            if pod.revision != command.ref.revision or pod.owner != child_uid:
                raise Refused(f"pod {pod.name} of r{pod.revision} is still there")
        self.leader()
        return pods
