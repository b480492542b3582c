"""What a user asks for: the spec of a ProfiledJob."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import ConfigDict, Field, WithJsonSchema

from rightpool.api.choices import (
    AdaptationMode,
    Batch,
    Capacity,
    CheckpointMode,
    CheckpointSignal,
    Objective,
    Switch,
)
from rightpool.api.labels import LabelSelector
from rightpool.api.model import ATOMIC, SET, ApiModel, Time
from rightpool.api.quantities import DURATION_PATTERN, TIME_SCHEMA, Duration, Memory, Money, Ratio, at_least
from rightpool.api.rules import Rule, required_by_rule, validations
from rightpool.api.template import PodTemplate
from rightpool.contract import MANAGED_BY

__all__ = [
    "Adaptation",
    "AdaptationMode",
    "Batch",
    "Capacity",
    "Checkpoint",
    "CheckpointMode",
    "CheckpointSignal",
    "Elasticity",
    "JobWorkload",
    "LabelSelector",
    "Objective",
    "PlacementSpec",
    "PoolSelection",
    "ProfiledJobSpec",
    "Profiling",
    "Progress",
    "Switch",
    "Targets",
    "Workload",
]

MAX_CHIPS: Final = 65536
MAX_CHIPS_PER_REPLICA: Final = 256
MAX_REPLICAS: Final = 10_000  # an index has at most 4 digits, which the bound on names counts on
MAX_POOLS: Final = 64
MAX_CHIP_COUNTS: Final = 64

_DURATION: Final = f"r'{DURATION_PATTERN}'"
_CONTAINERS: Final = "self.template.spec.containers"
_HAS_CONTAINERS: Final = f"has({_CONTAINERS})"
_CROSSED: Final = "has(self.elasticity.maxChips) && self.elasticity.minChips > self.elasticity.maxChips"
_ASKED: Final = "self.workload.job.chipsPerReplica * self.workload.job.replicas"

PoolName = Annotated[str, Field(min_length=1, max_length=63)]
ChipCount = Annotated[int, Field(ge=1, le=MAX_CHIPS)]


class JobWorkload(ApiModel):
    """A batch/v1 Indexed Job: as many pods as replicas, each with the same number of chips."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                f"has(self.chipContainer) || !{_HAS_CONTAINERS} || size({_CONTAINERS}) <= 1",
                "is needed because the template has several containers: name the one that gets the chips",
                field=".chipContainer",
                expression="'is needed because the template has several containers: name the one that gets the chips, "
                f"such as ' + {_CONTAINERS}[0].name",
                reason="FieldValueRequired",
            ),
            Rule(
                f"!has(self.chipContainer) || !{_HAS_CONTAINERS} || size({_CONTAINERS}) == 0 || "
                f"{_CONTAINERS}.exists(c, c.name == self.chipContainer)",
                "must name a container of the template: write the name of one of them",
                field=".chipContainer",
                expression=f"'must name a container of the template: write ' + {_CONTAINERS}[0].name + "
                f"(size({_CONTAINERS}) > 1 ? ' or ' + {_CONTAINERS}[1].name : '') + "
                f"(size({_CONTAINERS}) > 2 ? ' or another' : '')",
            ),
        )
    )

    chips_per_replica: int = Field(default=1, ge=1, le=MAX_CHIPS_PER_REPLICA)
    """Chips of each pod at the start. What is in force afterwards is in status.placement."""

    replicas: int = Field(default=1, ge=1, le=MAX_REPLICAS)
    """Pods at the start. What is in force afterwards is in status.placement, within `elasticity`."""

    template: PodTemplate
    """The pod template, as in a Job. It requests no chips: they are added where the job is placed."""

    chip_container: str | None = Field(default=None, max_length=63)
    """The container that gets the chips. Needed when the template has more than one container."""

    @property
    def chips(self) -> int:
        """Chips asked for at the start."""
        return self.chips_per_replica * self.replicas

    @property
    def chip_container_name(self) -> str:
        """The container that gets the chips: the named one, else the only one."""
        return self.chip_container or str(self.template["spec"]["containers"][0]["name"])


class Workload(ApiModel):
    """What runs: exactly one kind of workload."""

    model_config = ConfigDict(
        json_schema_extra=required_by_rule(
            "job", "add it: job is the kind of workload that runs, and holds the pod template as job.template"
        )
    )

    job: JobWorkload
    """A batch/v1 Indexed Job, for training and other work that ends."""


class Elasticity(ApiModel):
    """How many chips the job can use."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                "!has(self.maxChips) || self.minChips <= self.maxChips",
                "must not exceed maxChips: lower minChips or raise maxChips",
                field=".minChips",
            ),
            Rule(
                "!has(self.chipCounts) || self.chipCounts.all(n, n >= self.minChips && "
                "(!has(self.maxChips) || n <= self.maxChips))",
                "must lie between minChips and maxChips: remove the counts outside or widen the bounds",
                field=".chipCounts",
            ),
        )
    )

    min_chips: ChipCount = 1
    """The fewest chips that the job runs on."""

    max_chips: ChipCount | None = None
    """The most chips that the job runs on. Default: the largest of `chipCounts`, else the chips asked for."""

    chip_counts: tuple[ChipCount, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_CHIP_COUNTS,
        json_schema_extra={
            **ATOMIC,
            **validations(
                Rule(
                    "self.isSorted() && self.all(n, self.exists_one(m, m == n))",
                    "must ascend without repeats: write [1, 2, 4, 8]",
                )
            ),
        },
    )
    """The only chip counts that the program can run on, ascending. Default: powers of two that the pool can give."""

    batch: Batch = Batch.PER_CHIP
    """What happens to the batch when the number of chips changes. PerChip: the global batch grows with the chips.
    Global: it stays, and each chip's share shrinks."""


class PoolSelection(ApiModel):
    """Which AcceleratorPools may be used. All conditions that are given must hold."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                "!has(self.allow) || !has(self.deny) || !self.allow.exists(p, p in self.deny)",
                "must not name a pool that allow names too: remove it from one of the two",
                field=".deny",
                expression="'must not name ' + self.allow.filter(p, p in self.deny)[0] + "
                "', which allow names too: remove it from one of the two'",
            )
        )
    )

    allow: tuple[PoolName, ...] = Field(default=(), max_length=MAX_POOLS, json_schema_extra=SET)
    """Names of the pools that may be used. Empty: every pool."""

    deny: tuple[PoolName, ...] = Field(default=(), max_length=MAX_POOLS, json_schema_extra=SET)
    """Names of the pools that must not be used."""

    selector: LabelSelector | None = None
    """Labels that a pool must carry."""

    def selects(self, pool: str, labels: Mapping[str, str]) -> bool:
        """Whether the pool of this name and these labels may be used."""
        if pool in self.deny or (self.allow and pool not in self.allow):
            return False
        return self.selector is None or self.selector.matches(labels)


class PlacementSpec(ApiModel):
    """Where the job may run."""

    pools: PoolSelection = Field(default_factory=PoolSelection)
    """Which AcceleratorPools may be used."""

    capacity: Capacity = Capacity.ON_DEMAND
    """Kind of capacity. Spot is cheaper and can be taken away at any time; Any takes what is best."""

    memory_per_chip: Memory | None = None
    """Accelerator memory that the program needs on each chip, such as 14Gi. Measured while it runs; given here, pools
    with too little are left out before the first start."""


class Targets(ApiModel):
    """What the job must achieve."""

    objective: Objective = Objective.MINIMIZE_COST
    """What is made best among the placements that meet all targets."""

    min_scaling_efficiency: Ratio | None = None
    """Least share of perfect scaling, throughput / (chips × throughput of one chip), such as "0.85"."""

    max_cost_per_hour: Money | None = None
    """Most dollars an hour, such as "40"."""

    max_cost_per_million_samples: Money | None = None
    """Most dollars for a million samples, such as "1.20"."""

    budget: Money | None = None
    """Most dollars for the whole job, such as "500"."""

    deadline: Annotated[Time, WithJsonSchema(TIME_SCHEMA)] | None = None
    """When the job must be done, such as 2026-12-01T00:00:00Z. Needs `progress.totalSamples`."""


class Progress(ApiModel):
    """How much work there is."""

    total_samples: int = Field(ge=1, le=10**18)
    """Samples that the whole job consumes. With it the remaining time can be known."""


class Checkpoint(ApiModel):
    """How the program saves its state before it is moved."""

    mode: CheckpointMode = CheckpointMode.SIGNAL
    """Signal: the signal is raised in the program, which saves and goes on. Periodic: nothing is asked, the program's
    next save is awaited. None: the program cannot save, so it is never moved while it runs."""

    signal: CheckpointSignal = CheckpointSignal.SIGUSR1
    """The signal raised in mode Signal. The program must have a handler for it."""

    timeout: Annotated[Duration, at_least("1s", "120s")] = Field(default="120s", validate_default=True)
    """How long a save is awaited. Without one the job is not moved and runs on. For Periodic it should be longer than
    the program's own interval between saves."""

    path: str | None = Field(
        default=None,
        max_length=1024,
        json_schema_extra=validations(
            Rule("self.startsWith('/')", "must be an absolute path in the chip container: write /ckpt")
        ),
    )
    """Directory in the chip container that holds the checkpoints. A newer file there is the proof of a save. Without
    it, only saves that the profiler sees in the program count."""


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

    interval: Annotated[Duration, at_least("1s", "10s")] = Field(default="10s", validate_default=True)
    """Time between two readings."""

    window: Annotated[Duration, at_least("1s", "5m")] = Field(default="5m", validate_default=True)
    """Time over which readings become one profile."""


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

    require_approval: bool = False
    """Whether each move waits for the annotation `rightpool.dev/approve: <decision id>`."""


class ProfiledJobSpec(ApiModel):
    """What the user wants."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                f"!has(self.workload.job) || {_CROSSED} || {_ASKED} >= self.elasticity.minChips",
                "times chipsPerReplica must be at least elasticity.minChips: raise either of them, or lower minChips",
                field=".workload.job.replicas",
            ),
            Rule(
                f"!has(self.workload.job) || {_CROSSED} || !has(self.elasticity.maxChips) || "
                f"{_ASKED} <= self.elasticity.maxChips",
                "times chipsPerReplica must be at most elasticity.maxChips: lower either of the two, or raise maxChips",
                field=".workload.job.replicas",
            ),
            Rule(
                "!has(self.targets.deadline) || has(self.progress)",
                "needs spec.progress.totalSamples, without which the remaining time cannot be known: add it, or remove "
                "the deadline",
                field=".targets.deadline",
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
    """Kueue LocalQueue that the job waits in. It becomes the label kueue.x-k8s.io/queue-name of the child Job."""

    workload: Workload
    """What runs."""

    elasticity: Elasticity = Field(default_factory=Elasticity)
    """How many chips the job can use."""

    placement: PlacementSpec = Field(default_factory=PlacementSpec)
    """Where the job may run."""

    targets: Targets = Field(default_factory=Targets)
    """What the job must achieve."""

    progress: Progress | None = None
    """How much work there is."""

    checkpoint: Checkpoint = Field(default_factory=Checkpoint)
    """How the program saves its state before it is moved."""

    profiling: Profiling = Field(default_factory=Profiling)
    """How the job is measured."""

    adaptation: Adaptation = Field(default_factory=Adaptation)
    """What may be done about what was found."""

    @property
    def chips(self) -> int:
        """Chips asked for at the start."""
        return self.workload.job.chips

    @property
    def max_chips(self) -> int:
        """The most chips that the job runs on, with the default worked out."""
        if self.elasticity.max_chips is not None:
            return self.elasticity.max_chips
        return max(self.elasticity.chip_counts) if self.elasticity.chip_counts else self.chips

    @property
    def ours(self) -> bool:
        """Whether this operator looks after the job."""
        return self.managed_by == MANAGED_BY
