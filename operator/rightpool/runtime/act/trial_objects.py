"""Trials in the cluster: each is a ProfiledJob that belongs to the one whose program it runs."""

from __future__ import annotations

import logging

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import LABEL_TEAM
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.trial_seen import trial_name
from rightpool.planning.moves.commands import EndTrial, EnsureTrial
from rightpool.reporting.stored_job import StoredJob
from rightpool.runtime.act.creation import create_or_get
from rightpool.runtime.act.deletions import Deletions
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.observe.facts import meta
from rightpool.runtime.observe.store import Store
from rightpool.workloads.metadata import controller_reference
from rightpool.workloads.owner import Owner
from rightpool.workloads.trial import trial_spec

logger = logging.getLogger(__name__)


class TrialObjects:
    """Thread-safe where the trials of one job are made and ended by one thread at a time."""

    def __init__(self, client: ClusterClient, fence: Fence, store: Store, deletions: Deletions) -> None:
        self._client = client
        self._fence = fence
        self._store = store
        self._deletions = deletions

    def stored(self, job: Job) -> StoredJob | None:
        """The job's newest trial, as long as it exists."""
        if not job.state.trials:
            return None
        found = self._store.job(JobKey(job.key.namespace, trial_name(job.key.name, job.state.trials)))
        return found if found is not None and found.controller == job.uid else None

    def taken(self, job: Job) -> bool:
        """Whether somebody else's ProfiledJob has the name of the job's newest trial."""
        found = self._store.job(JobKey(job.key.namespace, trial_name(job.key.name, job.state.trials)))
        return found is not None and found.controller != job.uid

    def needed(self, job: Job, command: EnsureTrial | EndTrial) -> bool:
        """Whether the cluster does not comply with the command yet."""
        stored = self.stored(job)
        return stored is None if isinstance(command, EnsureTrial) else stored is not None and not stored.job.deleting

    def ensure(self, job: Job, command: EnsureTrial) -> bool:
        """Create it. Whether there was anything to do."""
        fresh = self._fence.persisted(job, command)
        owner = Owner(job.key.namespace, job.key.name, job.uid)
        name = trial_name(job.key.name, command.run.number)
        manifest = {
            "apiVersion": PROFILED_JOBS.api_version,
            "kind": PROFILED_JOBS.kind,
            "metadata": {
                "name": name,
                "namespace": job.key.namespace,
                "ownerReferences": [owner.reference],
                **({"labels": {LABEL_TEAM: fresh.team}} if fresh.team else {}),
            },
            "spec": trial_spec(fresh.job.spec, command.run),
        }
        body = create_or_get(self._client, PROFILED_JOBS, manifest)
        if controller_reference(meta(body)).get("uid") != job.uid:
            raise Fenced(f"ProfiledJob {name} is there and not this one's trial")
        self._store.assume(PROFILED_JOBS, body)
        logger.info("made trial %s", name, extra={"job": str(job.key), "pool": command.run.placement.pool})
        return True

    def end(self, job: Job, command: EndTrial) -> bool:
        """Delete it. Whether there was anything to do."""
        stored = self.stored(job)
        if stored is None or stored.job.deleting or not self._deletions.may_delete(stored.job.uid):
            return False
        key = stored.job.key
        try:
            body = self._client.get(PROFILED_JOBS, key.name, key.namespace)
        except NotFound:
            return False  # the watch reports the deletion
        self._fence.persisted(job, command)
        if str(meta(body)["uid"]) != stored.job.uid:
            return False
        self._deletions.delete(PROFILED_JOBS, body)
        logger.info("ended trial %s", key.name, extra={"job": str(job.key)})
        return True
