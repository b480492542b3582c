"""The shape of a job: all that its possible placements depend on. Jobs of equal shape are enumerated once."""

from typing import NamedTuple

from rightpool.api.choices import Capacity, ModelState, Objective
from rightpool.api.placement import CapacityType
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.hardware.node_needs import NodeNeeds
from rightpool.planning.jobs.abilities import Abilities
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.targets.registry import TARGETS, dollar_target
from rightpool.planning.offers.targets.target import JobTarget
from rightpool.planning.work.registry import work_of

_CAPACITY_TYPES = {
    Capacity.ON_DEMAND: (CapacityType.ON_DEMAND,),
    Capacity.SPOT: (CapacityType.SPOT,),
    Capacity.ANY: (CapacityType.ON_DEMAND, CapacityType.SPOT),
}


class VariantShape(NamedTuple):
    """What of a variant says where a job may be."""

    vendor: str
    """As placement.variants names it."""
    needs: NodeNeeds
    """What the template with this variant asks of nodes."""
    refusal: str | None
    """Why it can't be used, in the API server's words; None where it can."""


class Shape(NamedTuple):
    """The parts of a spec that say where a job may be. Enumeration and the gates of pools and sizes see nothing else,
    so that equal shapes have equal placements. A tuple, because it is made and hashed for every job."""

    chips_per_replica: int
    """As the spec asks for."""
    replicas: int
    """As the spec asks for, or as many as a server has."""
    low: int
    """Fewest chips that it may have."""
    high: int
    """Most chips that it may have."""
    counts: tuple[int, ...] | None
    """elasticity.chipCounts; None: any number between."""
    capacity: Capacity
    """What may be bought: on demand, spot or both."""
    allow: tuple[str, ...]
    """placement.pools.allow; empty: all pools."""
    deny: tuple[str, ...]
    """placement.pools.deny; empty: none."""
    labels: tuple[tuple[str, str], ...]
    """placement.pools.selector, sorted."""
    needs: NodeNeeds
    """What the template asks of nodes."""
    fixed: bool
    """Whether the user has it run in the very pods that are asked for."""
    variants: tuple[VariantShape, ...] = ()
    """One for each vendor that the spec has a variant for."""
    tensor: int = 1
    """Chips that must share a fast link."""
    pipeline: int = 1
    """How many such groups hold the model together."""
    able: Abilities | None = None
    """What can be changed of it where it is adopted. None: anything."""

    @classmethod
    def of(cls, job: Job) -> "Shape":
        """Of one job: of its spec, and of what is known of its variants."""
        spec = job.spec
        workload, elasticity, placement = spec.workload, spec.elasticity, spec.placement
        pools, ref = placement.pools, job.state.revision
        replicas, bounds = workload.replicas, (spec.min_chips, spec.max_chips)
        if ref is not None and work_of(spec).scales:  # where it is: there are as many pods as there are now
            replicas = ref.placement.replicas
            bounds = (workload.chips_per_replica * replicas,) * 2
        selector, parallel = pools.selector, elasticity.model_parallel
        return cls(
            workload.chips_per_replica,
            replicas,
            *bounds,
            elasticity.chip_counts,
            placement.capacity,
            pools.allow,
            pools.deny,
            () if selector is None else tuple(sorted(selector.match_labels.items())),
            job.needs,
            spec.fixed,
            _variants(job) if job.variants else (),
            1 if parallel is None else parallel.tensor,
            1 if parallel is None else parallel.pipeline,
            job.able,
        )

    @property
    def keeps_pods(self) -> bool:
        """Whether it runs in the very pods that are asked for, or nowhere."""
        return self.fixed or not (self.able is None or self.able.resize)

    @property
    def multiple(self) -> int:
        """Chips that hold the model; every size is a multiple of it."""
        return self.tensor * self.pipeline

    def variant(self, vendor: str) -> VariantShape | None:
        """What is used on the chips of this vendor, if not the pod template as it is."""
        return next((variant for variant in self.variants if variant.vendor == vendor), None)

    def needs_on(self, vendor: str) -> NodeNeeds:
        """What the template for this vendor's chips asks of nodes."""
        variant = self.variant(vendor)
        return self.needs if variant is None else variant.needs

    @property
    def chips(self) -> int:
        """Chips that the user asks for."""
        return self.chips_per_replica * self.replicas

    @property
    def capacity_types(self) -> tuple[CapacityType, ...]:
        """The kinds of capacity that the user accepts."""
        return _CAPACITY_TYPES[self.capacity]


class Terms(NamedTuple):
    """What a start without measurements depends on beside the shape."""

    objective: Objective
    """What orders the placements."""
    memory: float | None
    """Bytes that each chip needs, as declared."""
    limits: tuple[tuple[JobTarget, float], ...]
    """The declared targets by which a price alone is judged, and what they are held to."""
    priced: str | None
    """The declared target that needs a price."""
    sharded: bool
    """Whether each chip may need more memory on fewer chips."""

    @classmethod
    def of(cls, spec: ProfiledJobSpec) -> "Terms":
        """Of one spec."""
        targets, memory = spec.targets, spec.placement.memory_per_chip
        return cls(
            targets.objective,
            None if memory is None else float(memory),
            tuple(
                (target, float(getattr(targets, target.field)))
                for target in TARGETS
                if not target.by_rate and target.declared(targets)
            ),
            dollar_target(targets),
            spec.elasticity.state is ModelState.SHARDED and spec.elasticity.model_parallel is None,
        )


def _variants(job: Job) -> tuple[VariantShape, ...]:
    refused = dict(job.observed.refused_variants)
    return tuple(VariantShape(variant.vendor, variant.needs, refused.get(variant.vendor)) for variant in job.variants)
