"""A ProfiledJob as planning sees it: read from the object once per change of the object, not once per cycle."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from rightpool.api.altered import altered
from rightpool.api.choices import AdoptionChange, Switch
from rightpool.api.conditions import ConditionType
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.record import Record
from rightpool.api.state import JobState
from rightpool.api.status import ProfiledJobStatus
from rightpool.api.trace import read_request
from rightpool.api.trial_request import read_trial_request
from rightpool.api.units import read_unix_time
from rightpool.api.value_object import value_object
from rightpool.api.workload import JobWorkload, Workload
from rightpool.contract import (
    ANNOTATION_APPROVE,
    ANNOTATION_RELEASE,
    ANNOTATION_TRACE,
    ANNOTATION_TRIAL,
    FINALIZER,
    GROUP,
    LABEL_TEAM,
    VERSION,
)
from rightpool.hardware.node_needs import NO_NEEDS, Aspect, NodeNeeds, Terms, claims_of
from rightpool.planning.jobs.abilities import Abilities
from rightpool.planning.jobs.job import Job, JobKey, VendorProgram
from rightpool.workloads.injection import Injection, inject
from rightpool.workloads.kinds.registry import pod_sets_of
from rightpool.workloads.metadata import controller_reference
from rightpool.workloads.names import short_image, workload_hash
from rightpool.workloads.overlay import workload_on
from rightpool.workloads.pod_set import PodSet, scaled_of
from rightpool.workloads.template import InvalidTemplate, chip_container_of, normalised

# Stands in for a spec that can't be read, so that such a job is a job like the others, with `invalid` set.
_UNREADABLE = ProfiledJobSpec(
    workload=Workload(job=JobWorkload(template={"spec": {"containers": [{"name": "unreadable"}]}}))
)

# For what the profiler's containers request, which no setting changes.
_PROFILER: Final = Injection("", "", 1.0, "Off", "None", "SIGUSR1")

_Kind = TypeVar("_Kind", bound=Record)

_NO_STATE: Final = JobState()
# What the operator acts and charges by. Of the rest of a status a part that can't be read is left out.
_ACTED_ON: Final = frozenset(
    {"conditions", "placement", "adopted", "cost", "migration", "pause", "rescue", "moves", "ledgerCount", "lastMoveAt"}
)
# Characters: an id, with a pool's name and its chips. An annotation may have a quarter of a megabyte.
_LONGEST_APPROVAL: Final = 512
PROFILED_JOB: Final = "ProfiledJob"
_TERMINAL: Final = (ConditionType.COMPLETED.value, ConditionType.FAILED.value)

LONGER: Final = 1.25
"""A status that is so much longer than the common one is the common one from then on: that of a job that is measured
follows that of one that is not, and says more of what others will say."""
MOST: Final = 8192
"""Bytes of it that are used: looking through them takes its time in each packing. Then comes the history of its job."""

_LEVEL: Final = 1
_BARE: Final = -15  # without header and checksum, which say what is known, and take a tenth of the time
# The common statuses of this process, each longer than the one before. None is dropped: what was packed against it
# can't be read without it.
_COMMON: Final[list[bytes]] = [b""]

_PARTS: Final[WeakValueDictionary[object, BaseModel]] = WeakValueDictionary()
_NAMES: Final[dict[frozenset[str], set[str]]] = {}


@value_object
class StoredJob:
    """A ProfiledJob as it is stored."""

    job: Job
    """Without what is observed."""

    status_packed: bytes
    """The status, of `packed`: it is read only to make the next one."""

    observed_generation: int | None
    """The generation that the status is about."""

    resource_version: str
    """Of the object that all of this was read from: the fence of every write that is based on it."""

    controller: str = ""
    """Uid of the object that it belongs to: of one whose label it was made of. Empty: it belongs to none."""

    team: str = ""
    """Who is charged for it, by its labels; empty where they do not say."""

    asks: frozenset[Aspect] = frozenset()
    """What it asks of nodes, on whatever chips."""

    claims: tuple[tuple[str, ...], ...] = ()
    """PersistentVolumeClaims that its pods with chips mount: of the template, then of each variant. Empty: none."""

    kept: tuple[Mapping[str, Any], ProfiledJobStatus] | None = None
    """The status in wire form and as it was read, where `status_packed` has none."""

    def bound_to(self, volumes: Mapping[tuple[str, str], Terms]) -> StoredJob:
        """The same with what volumes ask of nodes that its claims are bound to. volumes: what each asks, by namespace
        and name of the claim."""
        namespace = self.job.key.namespace
        own, *others = (
            [volumes[namespace, claim] for claim in claims if (namespace, claim) in volumes] for claims in self.claims
        )
        variants = tuple(
            variant._replace(needs=variant.needs.bound_to(found))
            for variant, found in zip(self.job.variants, others, strict=True)
        )
        job = altered(self.job, needs=self.job.needs.bound_to(own), variants=variants)
        return altered(self, job=job, asks=_asks(job))

    def running(self, workload: Workload, able: Abilities | None) -> StoredJob:
        """The same with the workload of the object that it names, and what can be changed of it. Raises
        InvalidTemplate."""
        spec = self.job.spec.model_copy(update={"workload": workload})
        # What belongs to its object would be deleted with it, and with it what the object was.
        consents = spec.adoption is not None and spec.adoption.change is AdoptionChange.RECREATE and not self.controller
        if able is not None and able.anew:
            able = able._replace(resize=able.resize or consents)
        digest, needs, image = _program(spec, workload)
        job = altered(self.job, spec=spec, workload_hash=digest, needs=needs, image=image, able=able)
        return altered(self, job=job, asks=_asks(job), claims=_claims(spec))

    @property
    def status(self) -> ProfiledJobStatus:
        """The status. An unreadable one is like none; the state says so."""
        return self.status_of(self.status_body)

    def status_of(self, body: Mapping[str, Any]) -> ProfiledJobStatus:
        """The same, for who has its wire form already."""
        if self.job.unreadable is not None:
            return ProfiledJobStatus()
        if self.kept is not None:
            return self.kept[1]
        try:
            return _read(ProfiledJobStatus, {**body, "state": self.job.state})
        except ValidationError:
            return ProfiledJobStatus()

    @property
    def status_body(self) -> dict[str, Any]:
        """The status in wire form."""
        if self.kept is not None:
            return dict(self.kept[0])
        return unpacked(self.status_packed)

    @property
    def regarding(self) -> dict[str, str]:
        """How an Event names the job."""
        return {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": PROFILED_JOB,
            "namespace": self.job.key.namespace,
            "name": self.job.key.name,
            "uid": self.job.uid,
        }


def read_job(
    body: Mapping[str, Any], previous: StoredJob | None = None, *, once: bool = False, own: bool = False
) -> StoredJob:
    """previous: the same object's last reading, whose parsed spec is reused where the spec has not changed. once: for
    a command that reads each job once and ends: time matters more than memory. own: the answer to a write of our own,
    on an object that had been read: only what is gone on from is parsed again."""
    about = body["metadata"]
    generation = int(about.get("generation") or 0)
    key = JobKey(str(about.get("namespace")), str(about["name"]))
    invalid: str | None = None
    unreadable: str | None = None
    state = _NO_STATE
    needs, image = NO_NEEDS, None
    same = previous is not None and previous.job.uid == about["uid"] and previous.job.generation == generation
    if same and previous is not None and previous.job.spec is not _UNREADABLE:
        spec, digest, variants = previous.job.spec, previous.job.workload_hash, previous.job.variants
        needs, image = previous.job.needs, previous.job.image
    else:
        try:
            spec = ProfiledJobSpec.model_validate(body.get("spec") or {})
            spec = spec if once else _shared(spec)
            digest, needs, image = _program(spec, spec.workload)
            variants = _variants(spec)
        except (ValidationError, ValueError, TypeError, KeyError) as error:
            spec, digest, variants, invalid = _UNREADABLE, "", (), f"spec: {first_problem(error)}"
        except InvalidTemplate as error:
            spec, digest, variants, invalid = _UNREADABLE, "", (), error.message
    status = ProfiledJobStatus.restored(body.get("status") or {})
    kept = None
    try:
        if own and previous is not None and previous.job.unreadable is None:
            state = _ended(_read(JobState, status), status)
        else:
            read = _read(ProfiledJobStatus, status)
            state = _ended(read.state, status)
            kept = (status, replace(read, state=state)) if once else None
    except (ValueError, TypeError, ArithmeticError) as error:
        unreadable = (
            f"status: {first_problem(error)}, written by another version or by somebody else: put it back as it was"
        )
    created, annotations = about.get("creationTimestamp"), about.get("annotations") or {}
    approved, traced = annotations.get(ANNOTATION_APPROVE), annotations.get(ANNOTATION_TRACE)
    tried = annotations.get(ANNOTATION_TRIAL)
    job = Job(
        key=key,
        uid=str(about["uid"]),
        generation=generation,
        created_at=0.0 if created is None else read_unix_time(created),
        spec=spec,
        workload_hash=digest,
        image=image,
        needs=needs,
        variants=variants,
        approved=None if approved is None else str(approved).strip()[:_LONGEST_APPROVAL],
        releasing=spec.workload_ref is not None and ANNOTATION_RELEASE in annotations,
        trace_request=None if traced is None else read_request(str(traced)),
        trial_request=None if tried is None else read_trial_request(str(tried)),
        invalid=invalid,
        unreadable=unreadable,
        deleting=bool(about.get("deletionTimestamp")),
        guarded=FINALIZER in (about.get("finalizers") or ()),
        on_trial=controller_reference(about).get("kind") == PROFILED_JOB,
        state=state,
    )
    observed_generation = status.get("observedGeneration")
    return StoredJob(
        job=job,
        status_packed=packed(status) if kept is None else b"",
        observed_generation=observed_generation if isinstance(observed_generation, int) else None,
        resource_version=str(about.get("resourceVersion") or ""),
        controller=sys.intern(str(controller_reference(about).get("uid", ""))),
        team=_team(about.get("labels") or {}),
        asks=previous.asks if previous is not None and spec is previous.job.spec else _asks(job),
        claims=previous.claims if previous is not None and spec is previous.job.spec else _claims(spec),
        kept=kept,
    )


def packed(status: Mapping[str, Any]) -> bytes:
    """A status as it is kept in memory; only this process can read it. JSON takes a tenth of the memory of the objects,
    and packed a third of that. Statuses have their names, reasons and most of their texts in common: each is packed
    against one of them, which takes a quarter of what it takes by itself, and half the time."""
    text = to_json(status)
    if min(len(text), MOST) > LONGER * len(_COMMON[-1]):
        _COMMON.append(text[:MOST])
    number = len(_COMMON) - 1
    packer = zlib.compressobj(_LEVEL, wbits=_BARE, zdict=_COMMON[number])
    return bytes((number,)) + packer.compress(text) + packer.flush()


def unpacked(kept: bytes) -> dict[str, Any]:
    """The status in wire form."""
    reader = zlib.decompressobj(_BARE, zdict=_COMMON[kept[0]])
    body: dict[str, Any] = from_json(reader.decompress(kept[1:]))
    return body


def edited_by_user(new: StoredJob, old: StoredJob) -> bool:
    """Whether users changed the job: its spec, its approval, the trace or trial that they ask for, or its deletion.
    Only the operator changes the status."""
    a, b = (
        (job.generation, job.approved, job.trace_request, job.trial_request, job.deleting) for job in (new.job, old.job)
    )
    return a != b


def _read(kind: type[_Kind], status: Mapping[str, Any]) -> _Kind:
    """What a status says, without the parts and entries of lists that can't be read and that nothing is decided by.
    Raises ValidationError where others can't be read."""
    rest = dict(status)
    while True:  # the state is read before what stands beside it, and each time something goes
        try:
            return kind.from_dict(rest)
        except ValidationError as error:
            places = {tuple(problem["loc"][:2]) for problem in error.errors(include_url=False, include_context=False)}
            if any(not place or place[0] in _ACTED_ON or place[0] not in rest for place in places):
                raise
        for name in {str(place[0]) for place in places}:
            of_name = {place[-1] for place in places if place[0] == name}
            if isinstance(rest[name], list) and name not in of_name:
                rest[name] = [entry for index, entry in enumerate(rest[name]) if index not in of_name]
            else:
                del rest[name]


def _program(spec: ProfiledJobSpec, workload: Workload) -> tuple[str, NodeNeeds, str | None]:
    """The workload's hash, what its pods with chips ask of nodes, and their image. Raises InvalidTemplate."""
    pod_sets = pod_sets_of(workload)
    scaled = scaled_of(pod_sets)
    needs = _needs(scaled, profiled=spec.profiling.mode is not Switch.OFF)
    return workload_hash(pod_sets), needs, _image(scaled)


def _image(pod_set: PodSet) -> str | None:
    """Of the container with the chips, as messages name it; None where the template names none."""
    try:
        image = chip_container_of(normalised(pod_set.template), pod_set.chip_container).get("image")
    except InvalidTemplate:
        return None  # who builds it says so
    return sys.intern(short_image(image)) if isinstance(image, str) and image else None


def _needs(pod_set: PodSet, *, profiled: bool) -> NodeNeeds:
    """As the pods are built, with the profiler. What it requests by itself no node is too small for."""
    needs = NodeNeeds.of(pod_set.template)
    if profiled and needs.requests:
        try:
            needs = NodeNeeds.of(inject(pod_set.template, pod_set.chip_container, _PROFILER, pod_set.chips))
        except InvalidTemplate:
            pass  # who builds it says so
    return needs.kept_apart(pod_set.apart) if pod_set.apart else needs


def _variants(spec: ProfiledJobSpec) -> tuple[VendorProgram, ...]:
    """What runs on the chips of the vendors that the spec has variants for. Raises InvalidTemplate, with the field."""
    found = []
    for variant in spec.placement.variants:
        workload = workload_on(spec, variant.vendor)
        found.append(VendorProgram(variant.vendor.value, *_program(spec, workload)))
    return tuple(found)


def _asks(job: Job) -> frozenset[Aspect]:
    return job.needs.aspects.union(*(variant.needs.aspects for variant in job.variants))


def _claims(spec: ProfiledJobSpec) -> tuple[tuple[str, ...], ...]:
    workloads = (spec.workload, *(workload_on(spec, variant.vendor) for variant in spec.placement.variants))
    found = tuple(claims_of(scaled_of(pod_sets_of(workload)).template) for workload in workloads)
    return found if any(found) else ()


def _team(labels: Mapping[str, Any]) -> str:
    return sys.intern(str(labels.get(LABEL_TEAM) or labels.get("team") or ""))


def _ended(state: JobState, status: Mapping[str, Any]) -> JobState:
    """The state, with the end of the job, which is in the conditions alone."""
    true = {condition["type"] for condition in status.get("conditions") or () if condition["status"] == "True"}
    kind = next((kind for kind in _TERMINAL if kind in true), None)
    return state if kind is None else replace(state, finished=kind)


def _shared(spec: ProfiledJobSpec) -> ProfiledJobSpec:
    """The spec, which was just made and nobody else has, with parts of other jobs' specs in the place of its own where
    those are equal: most jobs differ in their workload."""
    parts = {}
    for name in ProfiledJobSpec.model_fields:
        part = getattr(spec, name)
        if isinstance(part, BaseModel) and name != "workload":
            parts[name] = _PARTS.setdefault(
                (type(part), part.model_dump_json(), frozenset(part.model_fields_set)), part
            )
    spec.__dict__.update(parts)  # a copy would have 0.5 kB more: all these fields would count as set
    for own in (spec, spec.workload, *vars(spec.workload).values()):
        _share_names(own)
    return spec


def _share_names(own: object) -> None:
    """Take the names of the fields that were set from another model where they are the same: a set of 0.2 kB in each of
    ten thousand jobs. Nobody adds to it, since models are frozen."""
    if isinstance(own, BaseModel):
        names = own.model_fields_set
        object.__setattr__(own, "__pydantic_fields_set__", _NAMES.setdefault(frozenset(names), names))


def first_problem(error: Exception) -> str:
    """One line for the user out of what a parser says."""
    if isinstance(error, ValidationError):
        problem = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        what = problem["msg"].removeprefix("Value error, ")
        return f"{where}: {what}" if where else what
    return str(error) or type(error).__name__
