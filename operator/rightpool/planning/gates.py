"""Gates: what rules a placement out, for a typed reason and with the numbers behind it.

A pool is judged once for a job, a size once more; targets are judged when the throughput there has been predicted.
Every message names what would have to change.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from rightpool.api.choices import Batch, Capacity, Objective
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.hardware.accelerator import Vendor
from rightpool.hardware.placement import CapacityType, Placement
from rightpool.hardware.pool import Pool
from rightpool.planning.candidate import Rejection, RejectionReason
from rightpool.planning.progress import Outlook
from rightpool.planning.snapshot import JobState
from rightpool.planning.wording import chips, dollars, gibibytes, number, share, span
from rightpool.prediction.estimate import Estimate
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field

# A chip that is full to the last byte fails at the first longer sequence.
MEMORY_HEADROOM: Final = 1.05

_CAPACITY_TYPES: Final = {
    Capacity.ON_DEMAND: (CapacityType.ON_DEMAND,),
    Capacity.SPOT: (CapacityType.SPOT,),
    Capacity.ANY: (CapacityType.ON_DEMAND, CapacityType.SPOT),
}


def capacity_types(spec: ProfiledJobSpec) -> tuple[CapacityType, ...]:
    """The kinds of capacity that the user accepts."""
    return _CAPACITY_TYPES[spec.placement.capacity]


def home_vendor(pools: Iterable[Pool], current: Pool | None) -> Vendor:
    """Whose chips the pod template runs on, where the user does not say.

    Where the job runs now; before its first start the only vendor there is, and NVIDIA where there are several.
    """
    if current is not None:
        return current.accelerator.vendor
    vendors = {pool.accelerator.vendor for pool in pools}
    return vendors.pop() if len(vendors) == 1 else Vendor.NVIDIA


def needs_price(spec: ProfiledJobSpec) -> bool:
    """Whether a placement without a price can't be compared with the others."""
    return spec.targets.objective is not Objective.MINIMIZE_TIME or cost_target(spec) is not None


def cost_target(spec: ProfiledJobSpec) -> str | None:
    """The first declared target that is in dollars."""
    targets = spec.targets
    if targets.max_cost_per_hour is not None:
        return "targets.maxCostPerHour"
    if targets.max_cost_per_million_samples is not None:
        return "targets.maxCostPerMillionSamples"
    return "targets.budget" if targets.budget is not None else None


def pool_gate(spec: ProfiledJobSpec, pool: Pool, vendor: Vendor) -> Rejection | None:
    """Whether the user lets the job onto this pool at all. vendor: whose chips the template is known to run on."""
    rules = spec.placement.pools
    if pool.name in rules.deny:
        return Rejection(RejectionReason.POOL_DENIED, f"{pool.name} is in placement.pools.deny")
    if rules.allow and pool.name not in rules.allow:
        return Rejection(
            RejectionReason.POOL_DENIED,
            f"{pool.name} is not in placement.pools.allow ({', '.join(rules.allow)}): add it there to use it",
        )
    if rules.selector is not None and not rules.selector.matches(pool.labels):
        wanted = ", ".join(f"{key}={value}" for key, value in sorted(rules.selector.match_labels.items()))
        return Rejection(
            RejectionReason.POOL_DENIED, f"{pool.name} lacks the labels of placement.pools.selector ({wanted})"
        )
    if pool.accelerator.vendor is not vendor and pool.name not in rules.allow:
        return Rejection(
            RejectionReason.VENDOR_NOT_DECLARED,
            f"{pool.name} has {pool.accelerator.vendor} chips and the template is taken to run on {vendor} alone: "
            "where it runs on both, name the pool in placement.pools.allow",
        )
    return None


def node_selector(spec: ProfiledJobSpec) -> dict[str, str]:
    """Labels of nodes that the user's template asks for, beside those of the pool."""
    pod = spec.workload.job.template.get("spec")
    wanted = pod.get("nodeSelector") if isinstance(pod, Mapping) else None
    return {str(key): str(value) for key, value in wanted.items()} if isinstance(wanted, Mapping) else {}


def node_selector_gate(spec: ProfiledJobSpec, pool: Pool) -> Rejection | None:
    """Whether the pool has nodes that the template's own nodeSelector lets the pods onto. Nodes that an autoscaler
    would add may have any labels but those that tell the pool."""
    wanted = node_selector(spec)
    if not wanted:
        return None
    asks = "template.spec.nodeSelector asks for"
    for key, value in sorted(wanted.items()):
        given = pool.node_selector.get(key, value)
        if given != value:
            message = f"nodes of {pool.name} have {key}={given}, and {asks} {key}={value}"
            remedy = "remove it there, and choose pools with spec.placement.pools"
            return Rejection(RejectionReason.NODE_SELECTOR, f"{message}: {remedy}")
    asked = frozenset(wanted.items())
    if not pool.node_labels or pool.growable or any(asked <= labels for labels in pool.node_labels):
        return None
    there = frozenset().union(*pool.node_labels)
    missing = sorted(asked - there) or sorted(asked)
    said = " and ".join(f"{key}={value}" for key, value in missing)
    message = f"{asks} {said}, which no node of {pool.name} has: label its nodes, or remove it there"
    return Rejection(RejectionReason.NODE_SELECTOR, message)


def capacity_type_gate(spec: ProfiledJobSpec, pool: Pool, capacity: CapacityType) -> Rejection | None:
    """Whether the pool sells chips the way the user buys them."""
    if capacity not in capacity_types(spec):
        return Rejection(
            RejectionReason.CAPACITY_TYPE,
            f"placement.capacity is {spec.placement.capacity}, which rules out {capacity}",
        )
    if capacity is CapacityType.SPOT and pool.price.spot is None and pool.price.on_demand is not None:
        return Rejection(
            RejectionReason.CAPACITY_TYPE,
            f"{pool.name} sells no spot capacity: set placement.capacity to OnDemand or Any to use it",
        )
    return None


def bounds_gate(spec: ProfiledJobSpec, count: int) -> Rejection | None:
    """Whether the program can run on so many chips, by the user's word."""
    elasticity = spec.elasticity
    if elasticity.chip_counts is not None and count not in elasticity.chip_counts:
        offered = ", ".join(str(entry) for entry in elasticity.chip_counts)
        return Rejection(
            RejectionReason.SIZE_NOT_OFFERED, f"{chips(count)} is not one of elasticity.chipCounts ({offered})"
        )
    if not elasticity.min_chips <= count <= spec.max_chips:
        return Rejection(
            RejectionReason.SIZE_NOT_OFFERED,
            f"{chips(count)} is outside elasticity.minChips {elasticity.min_chips} to maxChips {spec.max_chips}",
        )
    return None


def no_size(spec: ProfiledJobSpec, pool: Pool) -> Rejection:
    """The pool can't give any size that the job can use."""
    low, high = spec.elasticity.min_chips, spec.max_chips
    whole = f"slices of {pool.slice.chips}" if pool.slice is not None else f"nodes of {pool.chips_per_node}"
    return Rejection(
        RejectionReason.SIZE_NOT_OFFERED,
        f"{pool.name} gives chips in {whole}, {pool.reach} at most: no size of {low} to {high} chips is among them; "
        "change elasticity.minChips, maxChips or chipCounts",
    )


def needed_memory(spec: ProfiledJobSpec, profile: Profile | None) -> tuple[float, str] | None:
    """Bytes that each chip needs, and where that is from; None where neither measured nor declared."""
    used = profile.value(Field.MEMORY_USED) if profile is not None else None
    if used is not None:
        return used, "measured"
    declared = spec.placement.memory_per_chip
    return None if declared is None else (float(declared), "placement.memoryPerChip")


def memory_gate(
    spec: ProfiledJobSpec,
    need: tuple[float, str] | None,
    source: tuple[int, Pool] | None,
    count: int,
    pool: Pool,
    seen: bool,
) -> Rejection | None:
    """Whether the job fits into a chip of `pool` when it runs on `count` of them.

    source: chips and pool where `need` was measured. seen: the job ran at this very placement before.

    With a batch per chip the use per chip stays, except for state that is split over the chips, which nobody reports:
    on fewer chips either the worst case must fit, all of it split, or the chip must be no smaller than the current one.
    """
    size = pool.accelerator.memory_bytes
    if seen:
        return None
    if source is not None and pool.accelerator.key == source[1].accelerator.key and count >= source[0]:
        return None
    if need is None:
        if source is None or size >= source[1].accelerator.memory_bytes:
            return None
        return Rejection(
            RejectionReason.MEMORY,
            f"chips of {pool.name} have {gibibytes(size)}, less than now, and what the job uses is neither measured "
            "nor declared: set placement.memoryPerChip",
        )
    amount, origin = need
    if amount * MEMORY_HEADROOM > size:
        return Rejection(
            RejectionReason.MEMORY,
            f"needs {gibibytes(amount)} a chip ({origin}) and 5% to spare, chips of {pool.name} have {gibibytes(size)}",
        )
    if source is None or count >= source[0] or origin != "measured":
        return None
    worst = amount * source[0] / count
    if worst * MEMORY_HEADROOM <= size:
        return None
    if spec.elasticity.batch is Batch.PER_CHIP and size >= source[1].accelerator.memory_bytes:
        return None
    return Rejection(
        RejectionReason.MEMORY,
        f"on {chips(count)} instead of {source[0]} each chip may need up to {gibibytes(worst)} (what is split over the "
        f"chips now is not known), chips of {pool.name} have {gibibytes(size)}",
    )


def price_gate(spec: ProfiledJobSpec, pool: Pool, hourly: float | None, first_start: bool) -> Rejection | None:
    """Whether a missing price stands in the way. A first start is held up only by a target in dollars."""
    if hourly is not None:
        return None
    target = cost_target(spec)
    if target is None and (first_start or not needs_price(spec)):
        return None
    why = f"{target} is set" if target is not None else f"targets.objective is {spec.targets.objective}"
    return Rejection(
        RejectionReason.PRICE_UNKNOWN, f"{pool.name} has no price and {why}: set spec.price of the AcceleratorPool"
    )


def hourly_gate(spec: ProfiledJobSpec, hourly: float | None) -> Rejection | None:
    """targets.maxCostPerHour."""
    most = spec.targets.max_cost_per_hour
    if most is None or hourly is None or hourly <= float(most):
        return None
    return Rejection(
        RejectionReason.COST_PER_HOUR,
        f"costs {dollars(hourly)} an hour, above targets.maxCostPerHour {dollars(float(most))}",
    )


def avoided_gate(job: JobState, placement: Placement, now: float) -> Rejection | None:
    """Whether a move there was undone lately."""
    for entry in job.avoid:
        if (
            entry.pool == placement.pool
            and entry.chips == placement.chips
            and (entry.until is None or entry.until > now)
        ):
            again = "until the spec changes" if entry.until is None else f"for another {span(entry.until - now)}"
            return Rejection(
                RejectionReason.AVOIDED,
                f"{chips(entry.chips)} of {entry.pool}: tried and left ({entry.reason}); not tried again {again}",
            )
    return None


def target_gate(
    spec: ProfiledJobSpec,
    ahead: Outlook,
    rate: Estimate,
    hourly: float | None,
    cost: Estimate | None,
    efficiency: float | None,
    restart: float,
) -> Rejection | None:
    """Whether the declared targets hold at `rate` samples/s. restart: seconds lost before it is reached, 0 where
    the job is."""
    targets = spec.targets
    how = "measured" if restart == 0.0 else "predicted"
    most = targets.max_cost_per_million_samples
    if most is not None and cost is not None and cost.median > float(most):
        return Rejection(
            RejectionReason.COST_PER_SAMPLE,
            f"{how}: {dollars(cost.median)} per million samples, above targets.maxCostPerMillionSamples "
            f"{dollars(float(most))}",
        )
    least = targets.min_scaling_efficiency
    if least is not None and efficiency is not None and efficiency < float(least):
        return Rejection(
            RejectionReason.SCALING,
            f"{how}: {share(efficiency)} of perfect scaling, below targets.minScalingEfficiency "
            f"{share(float(least))}: fewer chips keep more",
        )
    left = ahead.seconds_left(rate.median)
    if left is not None and not ahead.meets_deadline(rate.median, restart):
        assert ahead.time_left is not None
        return Rejection(
            RejectionReason.DEADLINE,
            f"{how}: {number(rate.median)} samples/s: the rest takes {span(left + restart)}, targets.deadline is "
            + (f"in {span(ahead.time_left)}" if ahead.time_left > 0 else "over"),
        )
    if ahead.budget_left is not None and hourly is not None:
        rest = hourly * (left + restart) / 3600.0 if left is not None else 0.0
        if ahead.budget_left <= rest:
            needs = f"the rest costs {dollars(rest)}" if left is not None else "nothing may be spent any more"
            return Rejection(
                RejectionReason.BUDGET,
                f"{needs}, and {dollars(ahead.budget_left)} of targets.budget are left",
            )
    return None


def room_gate(spec: ProfiledJobSpec, placement: Placement, pool: Pool, room: int) -> Rejection | None:
    """Whether the pool can give the chips now. room: what is free, can grow, is not promised, or is the job's own.

    How much room there is changes all the time and is not told: the same refusal has the same words.
    """
    if placement.chips <= room:
        return None
    return Rejection(
        RejectionReason.NO_CAPACITY,
        f"{pool.name} has no room for {chips(placement.chips)} now"
        + (" on nodes that template.spec.nodeSelector selects" if pool.node_labels and node_selector(spec) else "")
        + f" ({pool.total} in all"
        + (f", {pool.growable} more can be added" if pool.growable else "")
        + ")",
    )
