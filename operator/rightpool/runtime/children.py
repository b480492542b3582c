"""The manifests of a Revision, with the profiler in them: workloads/ filled in with what this installation knows."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rightpool.api.choices import Switch
from rightpool.hardware.pool import Pool
from rightpool.planning.revision import RevisionRef
from rightpool.planning.snapshot import JobState
from rightpool.runtime.facts import ChildFacts
from rightpool.workloads.injection import Injection
from rightpool.workloads.job import build_job
from rightpool.workloads.owner import Owner
from rightpool.workloads.service import build_service
from rightpool.workloads.token import revision_token, token_digest

MIN_KEY_BYTES = 16


class Children:
    """Builds manifests and derives tokens. image: of the profiler. key: the installation's secret."""

    def __init__(self, image: str, key: bytes) -> None:
        self._image = image
        self._key = key

    def token(self, uid: str, revision: int) -> str:
        """The bearer token of a Revision's sidecars."""
        return revision_token(self._key, uid, revision)

    def build(self, job: JobState, ref: RevisionRef, pool: Pool, *, suspend: bool) -> Mapping[str, Any]:
        """A Revision's Job. Raises workloads.template.InvalidTemplate where the user's template can't be built from."""
        injection = self._injection(job, ref)
        return build_job(_owner(job), job.spec.workload.job, job.spec.queue_name, ref, pool, injection, suspend)

    def service(self, job: JobState, ref: RevisionRef, child: ChildFacts) -> Mapping[str, Any] | None:
        """The Service of a Revision, as property of its Job; None where pods need not find each other."""
        manifest = build_service(_owner(job), ref)
        if manifest is None:
            return None
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": child.name, "uid": child.uid, "controller": True}
        return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [owner]}}

    def _injection(self, job: JobState, ref: RevisionRef) -> Injection | None:
        spec = job.spec
        if spec.profiling.mode is Switch.OFF:
            return None
        return Injection(
            image=self._image,
            token_sha256=token_digest(self.token(job.uid, ref.revision)),
            interval_seconds=spec.profiling.interval.total_seconds(),
            trace=spec.profiling.trace.value,
            checkpoint_mode=spec.checkpoint.mode.value,
            checkpoint_signal=spec.checkpoint.signal.value,
            checkpoint_path=spec.checkpoint.path,
        )


def _owner(job: JobState) -> Owner:
    return Owner(job.key.namespace, job.key.name, job.uid)


def read_key(path: Path | None) -> bytes:
    """The installation's secret; without a file one that lives as long as the process.

    Raises ValueError for a file that holds too little to be one.
    """
    if path is None:
        return secrets.token_bytes(32)
    key = path.read_bytes().strip()
    if len(key) < MIN_KEY_BYTES:
        raise ValueError(f"{path} holds {len(key)} bytes, and a key needs at least {MIN_KEY_BYTES}")
    return key
