"""Asks the sidecars of a Revision to have the program save, and keeps what they answer."""

from __future__ import annotations

import logging

from rightpool.cluster.sidecars import Sidecars
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import RequestCheckpoint
from rightpool.planning.work.saving import saves_when_asked
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.fence import Fence
from rightpool.runtime.observe.store import Store

logger = logging.getLogger(__name__)


class Checkpointer:
    """Thread-safe: requests of different jobs run in parallel, those of one job in one thread at a time."""

    def __init__(self, store: Store, fence: Fence, children: Children, sidecars: Sidecars) -> None:
        self._store = store
        self._fence = fence
        self._children = children
        self._sidecars = sidecars
        self._requests: dict[str, tuple[str, str | None]] = {}  # by uid of the ProfiledJob: request id, error

    def error(self, job: Job) -> str | None:
        """The error of the current migration's request."""
        requested, migration = self._requests.get(job.uid), job.state.migration
        return (
            requested[1] if requested is not None and migration is not None and requested[0] == migration.id else None
        )

    def forget(self, uids: set[str]) -> None:
        """Forget deleted jobs."""
        for uid in uids:
            self._requests.pop(uid, None)

    def needed(self, job: Job) -> bool:
        """Whether the program is asked for a save, and does not save by itself."""
        return saves_when_asked(job)

    def request(self, job: Job, command: RequestCheckpoint) -> bool:
        """Ask all pods; whether all took the request."""
        if not self.needed(job):
            return False  # Periodic: the program saves by itself, and the migration waits for its next save
        alive = (pod for pod in self._store.pods(job.key, command.revision) if not pod.done)
        pods = [pod for pod in alive if command.ending or not pod.deleting]
        addresses = [(pod.name, pod.ip) for pod in pods if pod.ip]
        if not addresses:
            self._requests[job.uid] = (command.id, "no pod has an address yet")
            return False
        self._fence.leader()
        token = self._children.token(job.uid, command.revision)
        problems = self._sidecars.request_checkpoint(addresses, token, command.id)
        summary = None
        if problems:
            name, problem = min(problems.items())
            summary = f"{len(problems)} of {len(addresses)} pods did not take the request ({name}: {problem})"
            if self._requests.get(job.uid) != (command.id, summary):
                logger.info("checkpoint %s: %s", command.id, summary, extra={"job": str(job.key)})
        self._requests[job.uid] = (command.id, summary)
        return not problems
