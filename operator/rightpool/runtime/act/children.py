"""Builds the manifests of a Revision with the settings of this installation: profiler image and secret."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rightpool.api.choices import Switch
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import DirectTraffic
from rightpool.planning.work.registry import work_of
from rightpool.runtime.observe.facts import ChildFacts
from rightpool.workloads.admitted import pod_additions
from rightpool.workloads.injection import PROFILER_UID, Injection
from rightpool.workloads.kinds.kind import Kind
from rightpool.workloads.kinds.registry import kind_of, pod_sets_of
from rightpool.workloads.load import add_load
from rightpool.workloads.overlay import workload_on
from rightpool.workloads.owner import Owner
from rightpool.workloads.pod_set import scaled_of
from rightpool.workloads.rendezvous import Hosts
from rightpool.workloads.service import build_service
from rightpool.workloads.token import revision_token, token_digest

MIN_KEY_BYTES = 16


class Children:
    """Builds manifests and derives tokens."""

    def __init__(
        self,
        image: str,
        key: bytes,
        *,
        cpu_limit: str = "",
        user: int = PROFILER_UID,
        gives_users: Callable[[str], bool] = lambda namespace: False,
    ) -> None:
        """`image`, `cpu_limit` and `user` are the profiler's, `key` is the installation's secret. gives_users: whether
        a namespace gives containers their users, and takes no other."""
        self._image = image
        self._cpu_limit = cpu_limit
        self._user = user
        self._gives_users = gives_users
        self._key = key

    def token(self, uid: str, revision: int) -> str:
        """The bearer token of a Revision's sidecars."""
        return revision_token(self._key, uid, revision)

    def build(
        self, job: Job, ref: Revision, pool: Pool, *, suspend: bool, original: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """Build a Revision's child. original: what its companion is made of, of a kind that has them. Raises
        workloads.template.InvalidTemplate for an unusable template."""
        kind, chosen = _program(job, ref, original)
        body = kind.build(
            _owner(job), chosen, job.spec.queue_name, ref, pool, self._injection(job, ref.revision), suspend
        )
        if job.on_trial and chosen is job.spec.workload.job:
            add_load(body["spec"]["template"])
        return body

    def companion(
        self, job: Job, ref: Revision, pool: Pool, original: Mapping[str, Any] | None
    ) -> Mapping[str, Any] | None:
        """Build the companion of a Revision's child; None where its kind has none. Raises
        workloads.template.InvalidTemplate."""
        kind, chosen = _program(job, ref, original)
        if kind.companion is None:
            return None
        return kind.companion.build(_owner(job), chosen, ref, pool, self._injection(job, ref.revision))

    def service(self, job: Job, ref: Revision, child: ChildFacts) -> Mapping[str, Any] | None:
        """Build the Service of a Revision, owned by its child; None if its pods need none from us."""
        hosts = self.hosts(job, ref, child)
        return None if hosts is None else build_service(_owner(job), ref, hosts, child.reference)

    def fronts(self, job: Job, to: DirectTraffic) -> list[dict[str, Any]]:
        """Build the Services at which requests come in, owned by the ProfiledJob; none where none do."""
        workload = job.spec.workload
        return kind_of(workload).fronts(_owner(job), workload.chosen, to.revisions, to.beside)

    def hosts(self, job: Job, ref: Revision, child: ChildFacts) -> Hosts | None:
        """The host names of the child's pods under a Service of ours; None if they need none from us."""
        hosts: Hosts | None = child.kind.hosts(job.spec.workload.chosen, child.name, ref.placement.replicas)
        return hosts

    def admitted(self, job: Job, child: ChildFacts, revision: int, at: Placement) -> Mapping[str, Any] | None:
        """Build the PodTemplate by which new pods of an adopted object get the profiler; None if they get none. at: how
        big the object is. Raises workloads.template.InvalidTemplate."""
        about, injection = child.adopted, self._injection(job, revision)
        if about is None or about.workload is None or injection is None:
            return None
        before = at if about.original is None or about.edited else about.original.placement
        scaled = scaled_of(pod_sets_of(about.workload))
        return pod_additions(_owner(job), about.trained, scaled, revision, at, before, injection)

    def _injection(self, job: Job, revision: int) -> Injection | None:
        spec = job.spec
        if spec.profiling.mode is Switch.OFF:
            return None
        return Injection(
            image=self._image,
            token_sha256=token_digest(self.token(job.uid, revision)),
            interval_seconds=spec.profiling.interval.total_seconds(),
            trace=spec.profiling.trace.value,
            checkpoint_mode=work_of(spec).saving(spec).value,
            checkpoint_signal=spec.checkpoint.signal.value,
            checkpoint_path=spec.checkpoint.path,
            checkpoint_files=spec.checkpoint.files,
            cpu_limit=self._cpu_limit,
            user=0 if self._gives_users(job.key.namespace) else self._user,
        )


def _program(job: Job, ref: Revision, original: Mapping[str, Any] | None) -> tuple[Kind[Any], Any]:
    """What the Revision runs as, and its workload as `build` takes it."""
    workload = workload_on(job.spec, ref.vendor)
    kind, chosen = kind_of(workload), workload.chosen
    return kind, chosen if kind.companion is None else kind.companion.known(chosen, original or {})


def _owner(job: Job) -> Owner:
    return Owner(job.key.namespace, job.key.name, job.uid)


def read_key(path: Path | None) -> bytes:
    """Read the installation's secret. Without a file it is random and valid for this process only.

    Raises ValueError for a key that is too short.
    """
    if path is None:
        return secrets.token_bytes(32)
    key = path.read_bytes().strip()
    if len(key) < MIN_KEY_BYTES:
        raise ValueError(f"{path} holds {len(key)} bytes, and a key needs at least {MIN_KEY_BYTES}")
    return key
