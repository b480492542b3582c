"""A job: the user's spec, the persisted state and what is observed now, kept apart."""

from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Final, NamedTuple
from zlib import crc32

from rightpool.api.adopted_object import Undone
from rightpool.api.altered import altered
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.api.trace import TraceRequest
from rightpool.api.traits import Parallelism
from rightpool.api.trial_request import TrialRequest
from rightpool.api.value_object import value_object
from rightpool.api.variation import Variation
from rightpool.api.work_unit import WorkUnit
from rightpool.hardware.node_needs import NO_NEEDS, NodeNeeds
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.abilities import Abilities
from rightpool.planning.jobs.adopted import Adopted, AwaitedChips
from rightpool.planning.jobs.revision_state import ChildRefusal, RevisionState, VariantRefusal
from rightpool.planning.jobs.sizing import Sizing
from rightpool.planning.jobs.threat import Threat
from rightpool.planning.jobs.time_limits import sized_by_tokens
from rightpool.planning.jobs.trace_answer import TraceAnswer
from rightpool.planning.jobs.trial_seen import TrialSeen
from rightpool.profiles.answers import Answers
from rightpool.profiles.bottleneck import Diagnosis
from rightpool.profiles.health import NOT_THROTTLED, throttling
from rightpool.profiles.profile import Profile
from rightpool.profiles.served import Sides
from rightpool.profiles.service import ServiceWindow
from rightpool.profiles.track import Track

TIMES_UNDONE: Final = 2
"""So often somebody else takes back a change of an adopted object before no other is made: once may be by chance."""


class JobKey(NamedTuple):
    """Namespace and name. A tuple, because it is hashed some thirty times for each job in each cycle."""

    namespace: str
    """Where the ProfiledJob is."""
    name: str
    """Of the ProfiledJob."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class VendorProgram(NamedTuple):
    """What a job runs on the chips of a vendor that it has a variant for."""

    vendor: str
    """As placement.variants names it."""
    workload_hash: str
    """Of the pod template with the variant laid over it, and the chip container."""
    needs: NodeNeeds = NO_NEEDS
    """What this template asks of nodes."""
    image: str | None = None
    """Of the chip container, as messages name it; None where the template names none."""


class Observed(NamedTuple):
    """What the cluster and the telemetry show of a job in this cycle. None of it is persisted. A tuple, because it is
    made and compared for each job in each cycle, and hardly ever is one new."""

    profile: Profile | None = None
    """Of the current Revision."""

    diagnosis: Diagnosis | None = None
    """What limits the job, by its profile."""

    variation: Variation | None = None
    """How its windows differ, up to now; what of it is stored lags behind."""

    checkpoint_at: float | None = None
    """Unix seconds of the newest save seen."""

    track: Track | None = None
    """Work that the Revision with running pods has counted; None where nothing could be read of it."""

    last_rate: float | None = None
    """Throughput of the newest part of a window, where a migration may begin now; None where too little of it has come
    since the last whole window, or where it does not compare with that."""

    revisions: Mapping[int, RevisionState] = MappingProxyType({})
    """Children seen in the cluster, by number."""

    checkpoint_error: str | None = None
    """Why the sidecars did not take the request for a save."""

    trace_answer: TraceAnswer | None = None
    """What the sidecars say of the trace that is under way."""

    threat: Threat | None = None
    """Pods of the current Revision that Kubernetes is about to end; None where there are none."""

    adopted: Adopted | None = None
    """The object that the job names, where it was found; None of a job that names none."""

    object_checked: int = 0
    """Number of the Revision that the API server was asked about last, whether the object could become it; 0: none."""

    object_refusal: ChildRefusal | None = None
    """Why the object can't become the Revision that was asked for last."""

    object_manifest: str | None = None
    """What its object is that is to be made anew, to be persisted before it is deleted; empty where somebody else has
    made another one. None where it is not to be."""

    pool_problem: str | None = None
    """Why the pool of the current Revision can't be used, with the remedy; None where it can."""

    refusal: ChildRefusal | None = None
    """Why the API server does not take the Revision's child."""

    route_problem: str | None = None
    """Why weights of a server's HTTPRoute can't be written, with the remedy; None where they can, and where it has
    none."""

    template_checked: bool = True
    """Whether the API server was asked if it would take a child of the edited template; what it said is `refusal`."""

    variants_checked: bool = True
    """Whether it was asked about every variant that is not in use."""

    refused_variants: tuple[VariantRefusal, ...] = ()
    """Those that it would not take."""

    error: str | None = None
    """How the operator failed to look at the job; None where it did not. The rest is then what was seen before."""

    answers: Answers | None = None
    """What a server answers now; None of other jobs, and where nothing is known yet."""

    sizing: Sizing | None = None
    """What a server's record says of its size; None of one without a target, and where nothing is known yet."""

    sides: tuple[Sides, ...] = ()
    """What both Revisions of a server have answered since its move began to share its requests."""

    service: tuple[ServiceWindow, ...] = ()
    """What the Revision of a server that answers did in its newest windows, the newest last."""

    trial: TrialSeen | None = None
    """The newest trial, as long as it exists; None of other jobs."""


NOT_OBSERVED: Final = Observed()


@value_object
class Job:
    """One ProfiledJob."""

    key: JobKey
    """Namespace and name."""

    uid: str
    """Of the object: a job of the same name made anew is another one."""

    generation: int
    """Of the spec."""

    created_at: float
    """Unix seconds."""

    spec: ProfiledJobSpec
    """What the user wants."""

    workload_hash: str
    """Of the pod template and chip container in the spec."""

    image: str | None = None
    """Of that container, as messages name it; None where the template names none."""

    needs: NodeNeeds = NO_NEEDS
    """What the pod template asks of nodes."""

    able: Abilities | None = None
    """What can be changed of an object that somebody else has made. None: each Revision is one of its own."""

    variants: tuple[VendorProgram, ...] = ()
    """What runs on the chips of vendors that spec.placement.variants names."""

    approved: str | None = None
    """The decision id in the approval annotation."""

    releasing: bool = False
    """Whether the annotation asks to put its object back as it was, and to let go of it."""

    trace_request: TraceRequest | None = None
    """The trace that the annotation asks for."""

    trial_request: TrialRequest | None = None
    """The trial that the annotation asks for."""

    invalid: str | None = None
    """Why the spec can't be used, in the user's words."""

    unreadable: str | None = None
    """Why the status can't be used, in the user's words."""

    deleting: bool = False
    """Whether the object is being deleted."""

    guarded: bool = False
    """Whether it is there until the operator has taken its finalizer off."""

    on_trial: bool = False
    """Whether it runs the program of another ProfiledJob, which it belongs to, to see what that does there."""

    state: JobState = field(default_factory=JobState)
    """What is persisted."""

    observed: Observed = NOT_OBSERVED
    """What is seen now."""

    @property
    def trial_asked(self) -> TrialRequest | None:
        """The trial that is asked for, until that is answered."""
        request, answer = self.trial_request, self.state.trial_answer
        return request if request is None or answer is None or answer.id != request.id else None

    def variant(self, vendor: str | None) -> VendorProgram | None:
        """What runs on the chips of this vendor, if not the pod template as it is."""
        return next((variant for variant in self.variants if variant.vendor == vendor), None)

    def needs_on(self, vendor: str | None) -> NodeNeeds:
        """What the template for this vendor's chips asks of nodes; None: of a vendor without a variant."""
        variant = self.variant(vendor)
        return self.needs if variant is None else variant.needs

    def workload_hash_of(self, ref: Revision) -> str:
        """The hash that a child of this Revision would be built under now."""
        return self.workload_hash_on(ref.vendor)

    def image_of(self, ref: Revision) -> str | None:
        """The image that a child of this Revision would be built from now."""
        return (self.variant(ref.vendor) or self).image

    def workload_hash_on(self, vendor: str | None) -> str:
        """The hash of what runs on the chips of this vendor."""
        variant = self.variant(vendor)
        return self.workload_hash if variant is None else variant.workload_hash

    @property
    def phase(self) -> float:
        """From 0 to 1, by the job. A process that starts hears of all jobs at once, and what is then done at regular
        times would be done of all of them in the same cycle."""
        return crc32(self.uid.encode()) / 2**32

    @property
    def edited(self) -> bool:
        """Whether the user has edited the spec since it was last seen to allow where the job is."""
        seen = None if self.state.revision is None else self.state.revision.generation
        return seen is not None and seen < self.generation

    @property
    def awaits_approval(self) -> bool:
        """Whether the migration that was decided on waits for its user's approval."""
        migration = self.state.migration
        if migration is None or migration.phase is not Phase.PLANNED or migration.demanded:
            return False
        # A recommendation's id is that of the decision that it becomes, and the place.
        approved = self.approved is not None and (self.approved + "-").startswith(migration.id + "-")
        return self.spec.adaptation.require_approval and not approved

    @property
    def stops(self) -> bool:
        """Whether the job is stopped, or is to be."""
        return self.spec.suspend or self.state.pause is not None

    @property
    def overruled(self) -> Undone | None:
        """Who has taken back changes of its object so often that no other is made until its user has edited the spec;
        None where nobody has."""
        undone = None if self.state.adopted is None else self.state.adopted.undone
        lasts = undone is not None and undone.generation == self.generation and undone.times >= TIMES_UNDONE
        return undone if lasts else None

    def with_state(self, state: JobState) -> "Job":
        """The same job with this persisted state."""
        return altered(self, state=state)

    def released(self, here: str, pools: Mapping[str, Pool]) -> "Job":
        """The same job without what keeps its object to the pool where it is: labels of nodes that the pool asks for
        and, where the object is left as it is, those that no node of another pool has. They are no wish of its own."""
        pool = pools.get(here)
        if self.spec.workload_ref is None or pool is None or not self.needs.labels:
            return self
        names = dict(pool.node_selector)
        if self.spec.only_watched and pool.shapes:
            others = {
                label
                for other in pools.values()
                if other.name != here
                for shape in (*other.shapes, *other.dedicated)
                for label in shape.labels
            }
            names |= {key: value for key, value in self.needs.labels if (key, value) not in others}
        return altered(self, needs=self.needs.without(names))

    def revision(self, number: int) -> RevisionState:
        """What is seen of a Revision; a Revision without a child is one that does not exist."""
        return self.observed.revisions.get(number) or RevisionState(revision=number, exists=False)

    @property
    def child(self) -> RevisionState | None:
        """What is seen of the current Revision; None before the first start."""
        return None if self.state.revision is None else self.revision(self.state.revision.revision)

    @property
    def queue(self) -> str | None:
        """The queue that says when its child runs: by its spec, or by the object that it names. None without one."""
        child = self.child
        return self.spec.queue_name or (None if child is None else child.queue)

    @property
    def queued(self) -> bool:
        """Whether it has a child that waits for its queue, to be run for the first time or again."""
        child = self.child
        if self.queue is None or child is None or (child.adopted and child.held):
            return False
        return child.exists and child.suspended

    @property
    def lacks(self) -> AwaitedChips | None:
        """What pods of it wait for where they are to be, and Kubernetes starts them; None where they do not, or it is
        moved. A server runs without some."""
        seen, here, child = self.observed.adopted, self.state.revision, self.child
        if self.state.migration is not None:
            return None
        if seen is not None:
            return seen.awaits
        if here is None or child is None or child.unschedulable_since is None or child.prevented:
            return None
        place = here.placement
        pods = place.replicas - child.holding - child.completed
        if pods <= 0 or self.spec.workload.server is not None:
            return None
        return AwaitedChips(pods * place.chips_per_replica, pods, None, child.unschedulable_since, place.pool)

    @property
    def awaits(self) -> AwaitedChips | None:
        """The same of an object that the operator does not start elsewhere: it has not seen it run, or may not."""
        return self.lacks if self.state.revision is None or self.spec.only_watched else None

    def starts_itself(self, place: Placement) -> bool:
        """Whether Kubernetes starts what waits of it there, as that is."""
        lacks = self.lacks
        if lacks is None:
            return False
        return (place.pool, place.chips, place.replicas) == (lacks.pool, *lacks[:2]) or self.awaits is not None

    @property
    def waits_since(self) -> float:
        """Unix seconds since when it has no place, or has had the one that it has."""
        if self.lacks is not None:
            return self.lacks.since
        return self.created_at if self.state.revision is None else self.state.revision.created_at

    @property
    def obstacle(self) -> str | None:
        """Why the job does not start where it is placed: its pods say so, or there is no pool to make any for. None
        where nothing is known to be in the way."""
        child = self.child
        if child is None:
            return None
        return child.blocked if child.exists else self.observed.pool_problem


def parallelism_of(job: Job) -> Parallelism:
    """How the job's work is divided: by its spec, else by what the profiler has seen."""
    profile, declared = job.observed.profile, job.spec.elasticity.model_parallel
    seen = Parallelism() if profile is None else profile.traits.parallelism
    return seen if declared is None else replace(seen, tensor=declared.tensor, pipeline=declared.pipeline)


def unit_of(job: Job) -> WorkUnit:
    """What the job's throughput counts where it runs now; samples where nothing was measured."""
    if job.spec.workload.server is not None:
        return WorkUnit.TOKENS if sized_by_tokens(job.spec.targets) else WorkUnit.REQUESTS
    return WorkUnit.SAMPLES if job.observed.profile is None else job.observed.profile.unit


def throttled_now(job: Job) -> bool:
    """Whether a fault holds down the clocks of the chips that the job has: its rate says nothing of such chips."""
    profile = job.observed.profile
    return profile is not None and throttling(profile) != NOT_THROTTLED
