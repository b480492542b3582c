"""A ProfiledJob as planning sees it: read from the object once per change of the object, not once per cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from weakref import WeakValueDictionary

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from rightpool.api.profiledjob import JobWorkload, ProfiledJobSpec, Workload
from rightpool.api.status import ProfiledJobStatus
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_APPROVE
from rightpool.planning.snapshot import JobKey, JobState
from rightpool.runtime.facts import meta
from rightpool.runtime.persistence import restored_fields
from rightpool.workloads.names import workload_hash

# Stands in for a spec that can't be read, so that such a job is a job like the others, with `invalid` set.
_UNREADABLE = ProfiledJobSpec(
    workload=Workload(job=JobWorkload(template={"spec": {"containers": [{"name": "unreadable"}]}}))
)

_PARTS: Final[WeakValueDictionary[object, BaseModel]] = WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class StoredJob:
    """state: without revisions, profile and diagnosis. said: the status as text, which is a tenth of what it weighs as
    objects, and is read only where something is to be said. observed_generation: what it is about.

    resource_version: of the object that all of this was read from, the fence of every write that is based on it.
    """

    state: JobState
    said: bytes
    observed_generation: int | None
    resource_version: str

    @property
    def status(self) -> ProfiledJobStatus:
        """The status. An unreadable one is like none; the state says so."""
        try:
            return ProfiledJobStatus.model_validate_json(self.said)
        except ValidationError:
            return ProfiledJobStatus()

    @property
    def status_body(self) -> dict[str, Any]:
        """The status in wire form."""
        body: dict[str, Any] = from_json(self.said)
        return body

    @property
    def regarding(self) -> dict[str, str]:
        """How an Event names the job."""
        return {
            "apiVersion": PROFILED_JOBS.api_version,
            "kind": PROFILED_JOBS.kind,
            "namespace": self.state.key.namespace,
            "name": self.state.key.name,
            "uid": self.state.uid,
        }


def read_job(body: Mapping[str, Any], previous: StoredJob | None = None) -> StoredJob:
    """previous: the same object's last reading, whose parsed spec is reused where the spec has not changed."""
    about = meta(body)
    generation = int(about.get("generation") or 0)
    key = JobKey(str(about.get("namespace")), str(about["name"]))
    invalid: str | None = None
    unreadable: str | None = None
    restored: dict[str, Any] = {}
    same = previous is not None and previous.state.uid == about["uid"] and previous.state.generation == generation
    if same and previous is not None and previous.state.spec is not _UNREADABLE:
        spec, digest = previous.state.spec, previous.state.workload_hash
    else:
        try:
            spec = _shared(ProfiledJobSpec.model_validate(body.get("spec") or {}))
            job = spec.workload.job
            digest = workload_hash(job.template, job.chip_container)
        except (ValidationError, ValueError, TypeError, KeyError) as error:
            spec, digest, invalid = _UNREADABLE, "", f"spec: {first_problem(error)}"
    status: Mapping[str, Any] = body.get("status") or {}
    try:
        restored = restored_fields(ProfiledJobStatus.model_validate(status))
    except (ValueError, TypeError, ArithmeticError) as error:
        unreadable = (
            f"status: {first_problem(error)}: it was written by another version of the operator, or by somebody else; "
            "put it back as it was"
        )
    approved = (about.get("annotations") or {}).get(ANNOTATION_APPROVE)
    state = JobState(
        key=key,
        uid=str(about["uid"]),
        generation=generation,
        created_at=_seconds(about.get("creationTimestamp")),
        spec=spec,
        workload_hash=digest,
        approved=None if approved is None else str(approved).strip(),
        invalid=invalid,
        unreadable=unreadable,
        deleting=bool(about.get("deletionTimestamp")),
    )
    generation_said = status.get("observedGeneration")
    return StoredJob(
        state=replace(state, **restored),
        said=to_json(status),
        observed_generation=generation_said if isinstance(generation_said, int) else None,
        resource_version=str(about.get("resourceVersion") or ""),
    )


def _shared(spec: ProfiledJobSpec) -> ProfiledJobSpec:
    """The same spec, made of parts of other jobs' specs where those are equal: most jobs differ in their workload."""
    parts = {}
    for name in ProfiledJobSpec.model_fields:
        part = getattr(spec, name)
        if isinstance(part, BaseModel) and name != "workload":
            parts[name] = _PARTS.setdefault(
                (type(part), part.model_dump_json(), frozenset(part.model_fields_set)), part
            )
    return spec.model_copy(update=parts)


def first_problem(error: Exception) -> str:
    """One line for the user out of what a parser says."""
    if isinstance(error, ValidationError):
        problem = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        return f"{where}: {problem['msg']}" if where else problem["msg"]
    return str(error) or type(error).__name__


def _seconds(timestamp: object) -> float:
    if not isinstance(timestamp, str):
        return 0.0
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()
