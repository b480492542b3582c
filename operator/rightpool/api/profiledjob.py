"""What a user asks for: the spec of a ProfiledJob."""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import ConfigDict, Field, model_validator

from rightpool.api.adoption import Adoption, WorkloadRef
from rightpool.api.checkpoint import Checkpoint
from rightpool.api.choices import AdaptationMode, AdoptionChange, Batch, GivingWay, Switch
from rightpool.api.elasticity import Elasticity
from rightpool.api.job_set import PODS_OF_JOB_SET
from rightpool.api.leader_worker_set import PODS_OF_LEADER_WORKER_SET
from rightpool.api.model import ApiModel
from rightpool.api.pool_selection import PlacementSpec
from rightpool.api.quantities import DURATION_PATTERN, Duration, Large, Ratio, a_second_or_more
from rightpool.api.rules import Rule, validations
from rightpool.api.server import SERVER_RULES
from rightpool.api.targets import Targets
from rightpool.api.train_job import PODS_OF_TRAIN_JOB
from rightpool.api.trial import Trial
from rightpool.api.work_unit import WorkUnit
from rightpool.api.workload import UNSEEN, Workload
from rightpool.contract import MANAGED_BY

_DURATION: Final = f"r'{DURATION_PATTERN}'"
_CROSSED: Final = (
    "(has(self.elasticity.minChips) && has(self.elasticity.maxChips) && "
    "self.elasticity.minChips > self.elasticity.maxChips)"
)
_GROUP: Final = "self.elasticity.modelParallel.tensor * self.elasticity.modelParallel.pipeline"
_COUNTS: Final = "self.elasticity.chipCounts"


def _size_rules(kind: str, asked: str, field: str, pods: str = "") -> tuple[Rule, ...]:
    """About the chips that this kind of workload asks for, by its field."""
    without = f"!has(self.workload) || !has(self.workload.{kind})"
    low = f"(has(self.elasticity.minChips) ? self.elasticity.minChips : has({_COUNTS}) ? {_COUNTS}[0] : {asked})"
    high = (
        f"(has(self.elasticity.maxChips) ? self.elasticity.maxChips : has({_COUNTS}) ? "
        f"{_COUNTS}[size({_COUNTS}) - 1] : {asked})"
    )
    return (
        Rule(
            f"{without} || {_CROSSED} || !has(self.elasticity.minChips) || {asked} >= self.elasticity.minChips",
            f"{pods}times chipsPerReplica must be at least elasticity.minChips: raise either of them, or lower "
            "minChips",
            field=f".workload.{kind}.{field}",
        ),
        Rule(
            f"{without} || {_CROSSED} || !has(self.elasticity.maxChips) || {asked} <= self.elasticity.maxChips",
            f"{pods}times chipsPerReplica must be at most elasticity.maxChips: lower either of the two, or raise "
            "maxChips",
            field=f".workload.{kind}.{field}",
        ),
        Rule(
            f"{without} || has(self.elasticity.batch) || {low} >= {high}",
            "is needed where minChips and maxChips differ: write PerChip if the global batch grows with the chips, "
            "or Global if it stays",
            field=".elasticity.batch",
            reason="FieldValueRequired",
        ),
        Rule(
            f"{without} || !has(self.elasticity.modelParallel) || {asked} % ({_GROUP}) == 0",
            f"{pods}times chipsPerReplica must be a multiple of elasticity.modelParallel.tensor times pipeline: change "
            "one of them",
            field=f".workload.{kind}.{field}",
        ),
    )


class Progress(ApiModel):
    """How much work there is, and how it is counted."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                "has(self.totalSamples) || has(self.samplesPerStep) || has(self.flopsPerSample)",
                "must say something: add totalSamples, samplesPerStep or flopsPerSample, or remove progress",
            )
        )
    )

    total_samples: int | None = Field(default=None, ge=1, le=10**18)
    """Samples that the whole job consumes. With it the remaining time can be known."""

    samples_per_step: int | None = Field(default=None, ge=1, le=10**12)
    """Samples that one optimizer step of the whole job takes, on the chips that the workload asks for. For jobs of
    which the profiler sees steps and no samples: the throughput is then derived from it. With batch PerChip it grows
    with the chips. Without it such a job is measured in steps a second, which suffices unless the batch is PerChip and
    the size may change, or totalSamples or maxCostPerMillionSamples is set."""

    flops_per_sample: Large | None = None
    """Floating-point operations that the model needs to train on one sample, such as "2.1e12": forward and backward,
    without what is computed twice to save memory. With them the model FLOPs utilization is known. They go before what
    the profiler counts, which it can do for JAX."""


class Profiling(ApiModel):
    """How the job is measured."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                f"!has(self.window) || !has(self.interval) || !self.window.matches({_DURATION}) || "
                f"!self.interval.matches({_DURATION}) || "
                "duration(self.window) >= duration(self.interval) + duration(self.interval) + duration(self.interval)",
                "must be at least three times the interval: lengthen window or shorten interval",
                field=".window",
            )
        )
    )

    mode: Switch = Switch.AUTO
    """Auto: the profiler is added to the pods. Off: it is not, and only what the cluster's own exporters
    tell is known."""

    trace: Switch = Switch.AUTO
    """Auto: short traces are taken where the program can give them. Off: never."""

    interval: Annotated[Duration, a_second_or_more("10s")] = Field(default="10s", validate_default=True)
    """Time between two readings."""

    window: Annotated[Duration, a_second_or_more("5m", longest="6h")] = Field(default="5m", validate_default=True)
    """Time over which readings become one profile, 6h at most."""


class Adaptation(ApiModel):
    """What may be done about what was found."""

    mode: AdaptationMode | None = None
    """Auto: decisions are carried out. Recommend: they are only written in the status. Off: none are made. Default:
    what the PlacementPolicy says, else Recommend."""

    cooldown: Duration = Field(default="15m", validate_default=True)
    """Least time between two moves of this job."""

    max_moves: int = Field(default=4, ge=0, le=1000)
    """Most moves in the life of this job. 0: it stays where it started."""

    min_savings: Ratio = Field(default="0.10", validate_default=True)
    """Share of the cost that a move must save. Below it nothing moves."""

    gives_way: Annotated[GivingWay, Field(alias="yield")] = GivingWay.NEVER
    """Move: with mode Auto, and fleet.mode Auto in the policy, the job may be moved and resized for others that gain
    more than it loses, and gets chips that nobody values more. It saves first. Never: it is not."""

    require_approval: bool = False
    """Whether each move waits for the annotation `rightpool.dev/approve: <decision id>`."""


class ProfiledJobSpec(ApiModel):
    """What the user wants."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            *_size_rules("job", "self.workload.job.chipsPerReplica * self.workload.job.replicas", "replicas"),
            *_size_rules(
                "jobSet",
                f"self.workload.jobSet.chipsPerReplica * {PODS_OF_JOB_SET}",
                "template",
                "pods of the role that trains ",
            ),
            *_size_rules(
                "trainJob",
                f"self.workload.trainJob.chipsPerReplica * {PODS_OF_TRAIN_JOB}",
                "template.trainer.numNodes",
            ),
            *_size_rules(
                "leaderWorkerSet",
                f"self.workload.leaderWorkerSet.chipsPerReplica * ({PODS_OF_LEADER_WORKER_SET})",
                "template.leaderWorkerTemplate.size",
                "pods of all groups ",
            ),
            Rule(
                "!has(self.workload) || !has(self.workload.leaderWorkerSet) || !has(self.queueName)",
                "must not be set for a LeaderWorkerSet yet: remove it",
                field=".queueName",
            ),
            Rule(
                "!has(self.workload) || !has(self.workload.trainJob) || !has(self.queueName)",
                "must not be set for a TrainJob yet: remove it",
                field=".queueName",
            ),
            Rule(
                "!has(self.workload) || !has(self.workload.trainJob) || !has(self.placement.variants) || "
                "size(self.placement.variants) == 0",
                "must not be set for a TrainJob, whose pods are its runtime's: remove it",
                field=".placement.variants",
            ),
            *SERVER_RULES,
            Rule(
                "has(self.workload) || has(self.workloadRef)",
                "add it: it says what runs; or workloadRef, which names an object that runs already",
                field=".workload",
                reason="FieldValueRequired",
            ),
            Rule(
                "!has(self.workload) || !has(self.workloadRef)",
                "must not stand beside workload, since one workload runs: remove either of them",
                field=".workloadRef",
            ),
            Rule(
                "has(self.workloadRef) == has(oldSelf.workloadRef) && "
                "(!has(self.workloadRef) || self.workloadRef == oldSelf.workloadRef)",
                "must not change, since costs and measurements are those of one workload: delete this ProfiledJob and "
                "create another one",
                field=".workloadRef",
            ),
            Rule(
                "!has(self.adoption) || has(self.workloadRef)",
                "is about an object that workloadRef names: remove it, or name one",
                field=".adoption",
            ),
            Rule(
                "!has(self.workloadRef) || !self.suspend",
                "must not be set beside workloadRef, since the object is not this ProfiledJob's: suspend it by its own "
                "spec",
                field=".suspend",
            ),
            Rule(
                "!has(self.workloadRef) || !has(self.queueName)",
                "must not be set beside workloadRef, since the object has a queue of its own or none: remove it",
                field=".queueName",
            ),
            Rule(
                "!has(self.workloadRef) || !has(self.placement.variants) || size(self.placement.variants) == 0",
                "must not be set beside workloadRef, since the object has one template: remove it",
                field=".placement.variants",
            ),
            Rule(
                "!has(self.trial) || (has(self.workload) && (has(self.workload.job) || has(self.workload.server)))",
                "must not be set without workload.job or workload.server, since no other kind is tried yet: remove it",
                field=".trial",
            ),
            Rule(
                "!has(self.trial) || !has(self.queueName)",
                "must not be set beside trial, since no queue admits a trial: remove either of them",
                field=".queueName",
            ),
            Rule(
                "!has(self.targets.deadline) || (has(self.progress) && has(self.progress.totalSamples))",
                "needs spec.progress.totalSamples, without which the remaining time cannot be known: add it, or remove "
                "the deadline",
                field=".targets.deadline",
            ),
            Rule(
                "has(self.queueName) == has(oldSelf.queueName) && "
                "(!has(self.queueName) || self.queueName == oldSelf.queueName)",
                "must not change, since what was admitted stays in its queue: delete the job and create it anew",
                field=".queueName",
            ),
        )
    )

    suspend: bool = False
    """Whether the job's pods are stopped. They are created again, from the last checkpoint, when it is false."""

    managed_by: str = Field(
        default=MANAGED_BY,
        max_length=63,
        json_schema_extra=validations(
            Rule(
                "self.matches(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
                f"must be a domain and a name: write {MANAGED_BY}, or the other controller's",
            ),
            Rule(
                "self == oldSelf",
                "must not change, since two controllers would hold the same pods: delete the job and create it anew",
            ),
        ),
    )
    """Which controller looks after the job, as in a batch/v1 Job. With any value but rightpool.dev/operator this one
    leaves the job fully alone: it makes no child, plans nothing and writes no status."""

    queue_name: str | None = Field(
        default=None,
        max_length=63,
        json_schema_extra=validations(
            Rule(
                "self.matches(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
                "must be the name of a LocalQueue in this namespace, only a-z, 0-9, '-' and '.': correct or remove it",
            )
        ),
    )
    """Kueue LocalQueue that the job waits in. It becomes the label kueue.x-k8s.io/queue-name of the child Job, and
    can't be changed."""

    workload: Workload = Field(default_factory=lambda: UNSEEN)
    """What runs. Not beside `workloadRef`."""

    workload_ref: WorkloadRef | None = None
    """An object that runs already, in place of `workload`: it is measured, and stays whoever's it is. Can't be
    changed."""

    adoption: Adoption | None = None
    """What may be done to the object that `workloadRef` names. Default: nothing."""

    elasticity: Elasticity = Field(default_factory=Elasticity)
    """How many chips the job can use. Without it the size is fixed: the pods and chips that the workload asks for."""

    placement: PlacementSpec = Field(default_factory=PlacementSpec)
    """Where the job may run."""

    targets: Targets = Field(default_factory=Targets)
    """What the job must achieve."""

    progress: Progress | None = None
    """How much work there is, and how it is counted."""

    checkpoint: Checkpoint = Field(default_factory=Checkpoint)
    """How the program saves its state before it is moved."""

    profiling: Profiling = Field(default_factory=Profiling)
    """How the job is measured."""

    adaptation: Adaptation = Field(default_factory=Adaptation)
    """What may be done about what was found."""

    trial: Trial | None = None
    """Lets the program be tried for some minutes on free chips elsewhere before a move is decided on. Default: it is
    not."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        """An object that admission has not seen is refused here."""
        if self.workload_ref is None and self.workload is UNSEEN:
            raise ValueError("workload: Field required")
        return self

    @property
    def only_watched(self) -> bool:
        """Whether what runs is an object of somebody else's that nothing may be done to."""
        change = AdoptionChange.RECOMMEND if self.adoption is None else self.adoption.change
        return self.workload_ref is not None and change is AdoptionChange.RECOMMEND

    @property
    def seen(self) -> bool:
        """Whether it is known what runs: the object that `workloadRef` names has been seen."""
        return self.workload is not UNSEEN

    @property
    def chips(self) -> int:
        """Chips asked for at the start."""
        return self.workload.chips

    @property
    def min_chips(self) -> int:
        """The fewest chips that the job runs on, with the default worked out."""
        return self._bounds[0]

    @property
    def max_chips(self) -> int:
        """The most chips that the job runs on, with the default worked out."""
        return self._bounds[1]

    @property
    def fixed(self) -> bool:
        """Whether the job runs in the very pods that the workload asks for, and in no others."""
        elastic = self.elasticity
        return elastic.min_chips is None and elastic.max_chips is None and elastic.chip_counts is None

    @property
    def batch(self) -> Batch:
        """What happens to the batch at another size; of a job that has none, it does not matter."""
        return self.elasticity.batch or Batch.PER_CHIP

    @property
    def total_samples(self) -> int | None:
        """Samples that the whole job consumes; None where that is not known."""
        return None if self.progress is None else self.progress.total_samples

    @property
    def flops_per_sample(self) -> float | None:
        """FLOPs of the model for one sample, as the user says; None where they don't."""
        known = None if self.progress is None else self.progress.flops_per_sample
        return None if known is None else float(known)

    @property
    def counts_samples(self) -> str | None:
        """The field by which the user counts in samples, so that steps can't be the unit of the job's work; None where
        there is none."""
        if self.total_samples is not None:
            return "progress.totalSamples"
        return None if self.targets.max_cost_per_million_samples is None else "targets.maxCostPerMillionSamples"

    def compares(self, unit: WorkUnit, chips: int, other: int) -> bool:
        """Whether throughput in this unit on so many chips can be compared with that on `other` ones: with batch
        PerChip a step has more samples on more chips."""
        return unit is WorkUnit.SAMPLES or chips == other or self.batch is Batch.GLOBAL

    def samples_per_step(self, chips: int) -> float | None:
        """Samples of one step of the whole job on so many chips, as the user says; None where they don't."""
        known = None if self.progress is None else self.progress.samples_per_step
        if known is None:
            return None
        return known * chips / self.chips if self.batch is Batch.PER_CHIP else float(known)

    @property
    def _bounds(self) -> tuple[int, int]:
        """What a size without `batch` would do is not known: such an object, which admission refuses, stays."""
        elastic, asked = self.elasticity, self.chips
        low = elastic.min_chips or (min(elastic.chip_counts) if elastic.chip_counts else asked)
        high = elastic.max_chips or (max(elastic.chip_counts) if elastic.chip_counts else asked)
        return (low, high) if low == high or elastic.batch is not None else (asked, asked)

    @property
    def managed(self) -> bool:
        """Whether this operator manages the job."""
        return self.managed_by == MANAGED_BY
