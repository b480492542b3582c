"""Rejections and gaps in words. Every sentence names what would have to change."""

from rightpool.api.conditions import Reason
from rightpool.api.placement import CapacityType, Placement
from rightpool.hardware.node_needs import format_amount
from rightpool.planning.offers import pool_rejection as pool_kinds
from rightpool.planning.offers import rejection as kinds
from rightpool.reporting.wording import chips, dollars, gibibytes, how_many, number, share, span


def pool_of(placement: Placement) -> str:
    """a10g (spot)."""
    return f"{placement.pool} (spot)" if placement.capacity is CapacityType.SPOT else placement.pool


def place(placement: Placement) -> str:
    """8 chips of a10g (spot)."""
    return f"{chips(placement.chips)} of {pool_of(placement)}"


def short_place(placement: Placement) -> str:
    """8×a10g (spot), for columns."""
    return f"{placement.chips}×{pool_of(placement)}"


def rejection_text(rejection: kinds.Rejection) -> str:
    """Why a placement is ruled out, by the numbers that the rejection holds."""
    match rejection:
        case pool_kinds.PoolDenied():
            return f"{rejection.pool} is in placement.pools.deny: remove it there to use it"
        case pool_kinds.PoolNotAllowed():
            allow = ", ".join(rejection.allow)
            return f"{rejection.pool} is not in placement.pools.allow ({allow}): add it there to use it"
        case pool_kinds.PoolNotSelected():
            wanted = ", ".join(f"{key}={value}" for key, value in rejection.wanted)
            lacks = f"{rejection.pool} lacks the labels of placement.pools.selector ({wanted})"
            return f"{lacks}: label the AcceleratorPool to use it"
        case pool_kinds.OtherVendor():
            return (
                f"{rejection.pool} has {rejection.vendor} chips, and the template is assumed to run on "
                f"{rejection.known} chips only. If it runs on both without changes, name the pool in "
                f"placement.pools.allow. Else add what differs to placement.variants, with vendor {rejection.vendor}"
            )
        case pool_kinds.VariantRefused():
            return (
                f"{rejection.pool} has {rejection.vendor} chips, and their variant can't be used: {rejection.refusal}"
            )
        case pool_kinds.SelectorContradicted():
            key, asks = rejection.key, "template.spec.nodeSelector asks for"
            message = f"nodes of {rejection.pool} have {key}={rejection.given}, and {asks} {key}={rejection.wanted}"
            return f"{message}: remove it there, and choose pools with spec.placement.pools"
        case pool_kinds.SelectorUnmatched():
            missing = " and ".join(f"{key}={value}" for key, value in rejection.missing)
            return (
                f"template.spec.nodeSelector asks for {missing}, which no node of {rejection.pool} has: label its "
                "nodes, or remove it there"
            )
        case pool_kinds.AffinityUnmatched():
            return (
                f"template.spec.affinity.nodeAffinity requires {' or '.join(rejection.terms)}, which no node of "
                f"{rejection.pool} meets: widen it to use the pool"
            )
        case pool_kinds.NodesShort():
            asked, most = (format_amount(rejection.resource, amount) for amount in (rejection.asked, rejection.most))
            return (
                f"Insufficient {rejection.resource}: a pod requests {asked} in template.spec, and nodes of "
                f"{rejection.pool} have {most} at most: request less to use it"
            )
        case pool_kinds.NodesTainted():
            taint = f"{rejection.taint.key}={rejection.taint.value}:{rejection.taint.effect}"
            return (
                f"nodes of {rejection.pool} have the taint {taint}: tolerate it in template.spec.tolerations or in "
                "the pool's spec.tolerations"
            )
        case pool_kinds.CapacityNotWanted():
            return f"placement.capacity is {rejection.wanted}, which rules out {rejection.capacity}: Any allows both"
        case pool_kinds.NoSpot():
            return f"{rejection.pool} has no spot capacity: set placement.capacity to OnDemand or Any to use it"
        case pool_kinds.SizeNotListed():
            offered = ", ".join(str(count) for count in rejection.counts)
            return f"a size of {chips(rejection.chips)} is not in elasticity.chipCounts ({offered})"
        case pool_kinds.SizeOutOfBounds():
            if rejection.low == rejection.high:
                return (
                    f"the spec asks for {chips(rejection.low)} and not for {rejection.chips}: to allow other sizes, "
                    "set elasticity.minChips, maxChips and batch"
                )
            bounds = f"elasticity.minChips {rejection.low} to maxChips {rejection.high}"
            return f"a size of {chips(rejection.chips)} is outside {bounds}"
        case pool_kinds.SizeNotMultiple():
            group = rejection.tensor * rejection.pipeline
            return (
                f"a size of {chips(rejection.chips)} is no multiple of the {group} that hold the model "
                f"(elasticity.modelParallel: tensor {rejection.tensor} × pipeline {rejection.pipeline})"
            )
        case pool_kinds.TensorSplit():
            fast = f"{rejection.fast} chips of a {'slice' if rejection.slices else 'pod'}"
            return (
                f"{rejection.pool} connects {fast} by fast links, and they can't be divided into groups of "
                f"{rejection.tensor}: lower elasticity.modelParallel.tensor, or set chipsPerReplica so that each pod "
                "holds whole groups"
            )
        case pool_kinds.NoSize():
            if rejection.parts:
                return (
                    f"{rejection.pool} gives MIG slices, and programs can't communicate between them: a job gets one "
                    "slice. If the program can run on one, set elasticity.minChips to 1, and elasticity.batch"
                )
            whole = f"slices of {rejection.unit}" if rejection.slices else f"nodes of {rejection.unit}"
            if rejection.pods is not None:
                count, each = rejection.pods
                return (
                    f"{rejection.pool} gives chips in {whole}, {rejection.reach} at most: {how_many(count, 'pod')} of "
                    f"{chips(each)} can't be placed. Without elasticity the size is fixed. To allow other sizes, set "
                    "elasticity.minChips, maxChips and batch"
                )
            multiple = (
                "" if rejection.multiple == 1 else f" in multiples of {rejection.multiple} (elasticity.modelParallel)"
            )
            return (
                f"{rejection.pool} gives chips in {whole}, {rejection.reach} at most: no size of {rejection.low} to "
                f"{rejection.high} chips{multiple} is among them; change elasticity.minChips, maxChips or chipCounts"
            )
        case kinds.PrecisionUnsupported():
            return (
                f"the program computes in {rejection.precision}, and {rejection.chip} of {rejection.pool} has "
                f"{', '.join(rejection.offered)}"
            )
        case kinds.StepsDiffer():
            return (
                f"steps/s on {chips(rejection.chips)} can't be compared with the present ones: with elasticity.batch "
                "PerChip a step has another number of samples there, and the profiler does not see it. Set "
                "spec.progress.samplesPerStep"
            )
        case kinds.MemoryUnknown():
            return (
                f"chips of {rejection.pool} have {gibibytes(rejection.size)}, less than now, and what the job uses is "
                "neither measured nor declared: set placement.memoryPerChip"
            )
        case kinds.MemoryShort():
            origin = "measured" if rejection.measured else "placement.memoryPerChip"
            return (
                f"needs {gibibytes(rejection.needed)} a chip ({origin}) and 5% to spare, and chips of {rejection.pool} "
                f"have {gibibytes(rejection.size)}"
            )
        case kinds.MemoryMayNotSuffice():
            return (
                f"on {chips(rejection.chips)} instead of {rejection.now} each chip may need up to "
                f"{gibibytes(rejection.worst)} and 5% to spare (set elasticity.state to say what is split over the "
                f"chips), and chips of {rejection.pool} have {gibibytes(rejection.size)}"
            )
        case kinds.PriceUnknown():
            target = rejection.target
            why = f"{target} is set" if target is not None else f"targets.objective is {rejection.objective}"
            return f"{rejection.pool} has no price and {why}: set spec.price of the AcceleratorPool"
        case kinds.CurrentPriceUnknown():
            return f"{rejection.pool}, where the job runs, has no price to compare with: set its spec.price"
        case kinds.HourTooDear():
            return f"costs {dollars(rejection.cost)} an hour, above targets.maxCostPerHour {dollars(rejection.most)}"
        case kinds.Avoided():
            remaining = rejection.remaining
            again = "until the spec changes" if remaining is None else f"for another {span(remaining)}"
            where = f"{chips(rejection.chips)} of {rejection.pool}"
            return f"{where}: tried and left ({rejection.why}); not tried again {again}"
        case kinds.SamplesTooDear():
            most = f"targets.maxCostPerMillionSamples {dollars(rejection.most)}"
            return f"{_known(rejection.measured)}: {dollars(rejection.cost)} per million samples, above {most}"
        case kinds.ScalingPoor():
            return (
                f"{_known(rejection.measured)}: {share(rejection.efficiency)} of perfect scaling, below "
                f"targets.minScalingEfficiency {share(rejection.least)}: fewer chips keep more"
            )
        case kinds.FlopsUtilizationLow():
            return (
                f"{_known(rejection.measured)}: {share(rejection.utilization)} of the chips' peak FLOP/s, below "
                f"targets.minModelFlopsUtilization {share(rejection.least)}"
            )
        case kinds.ScalingNoBetterKnown():
            return (
                f"the job was moved away from {place(rejection.placement)}, and nothing new is known since then about "
                "targets.minScalingEfficiency there"
            )
        case kinds.DeadlineMissed():
            left = f"is in {span(rejection.time_left)}" if rejection.time_left > 0.0 else "has passed"
            rest = f"the rest takes {span(rejection.rest)}, and targets.deadline {left}"
            return f"{_known(rejection.measured)}: {number(rejection.rate)} samples/s: {rest}"
        case kinds.BudgetShort():
            cost = rejection.rest
            needs = "nothing may be spent any more" if cost is None else f"the rest costs {dollars(cost)}"
            return f"{needs}, and {dollars(rejection.left)} of targets.budget are left"
        case kinds.BudgetSpent():
            return f"targets.budget {dollars(rejection.budget)} is spent: raise it"
        case kinds.SpecificationsMissing():
            return (
                f"{rejection.here} and {rejection.there} have no precision in common in the catalog, or one has no "
                "memory bandwidth there: add what is missing by spec.chip of their pools"
            )
        case kinds.NotMeasured():
            return gap_text(rejection.gap)
        case kinds.OtherChosen():
            return f"ranks after {place(rejection.taken)}"
        case kinds.NoRoom():
            selected = " on nodes that the template selects" if rejection.selected else ""
            there = f"{rejection.total} in all"
            there += f", {rejection.growable} more can be added" if rejection.growable else ""
            return f"{rejection.pool} has no room for {chips(rejection.chips)} now{selected} ({there})"
        case kinds.SuspectedPool():
            return f"too many of the last moves to {rejection.pool} had to be undone: one job at a time tries it"
        case kinds.KeptFree():
            return (
                f"the free chips of {rejection.pool} are kept for an older job, which has waited longer than the "
                f"policy's startDeadline: {chips(rejection.chips)} would delay it"
            )
    raise NotImplementedError(type(rejection).__name__)


_GAPS = {
    Reason.CRASH_LOOP: "the program fails and is started again",
    Reason.TELEMETRY_UNAVAILABLE: "measurements can't be read at the moment; the job runs on as it is",
    Reason.PROFILING_OFF: "profiling.mode is Off, and nothing else measures the pods",
    Reason.NO_TELEMETRY: "nothing was heard from the pods since they started",
    Reason.STALE_TELEMETRY: "the newest measurement is too old to decide on",
    Reason.SHARED_CHIP: "processes of others work on a chip of the job; condition Profiled says how much",
    Reason.PARTIAL_TELEMETRY: "throughput is not measured; condition Profiled says why",
}


def gap_text(gap: kinds.Gap) -> str:
    """What is missing to decide by measurements."""
    if gap.reason is Reason.STARTING:
        return f"not all pods run yet{f': {gap.blocked}' if gap.blocked else ''}"
    if gap.queue is not None:
        return f"the job waits for quota of queue {gap.queue}"
    if gap.revision is not None:
        return f"the profile is still of revision {gap.revision}"
    if gap.window is not None:
        return f"the step time is not steady yet, or the window of {span(gap.window)} is not full"
    if gap.heard is not None:
        return f"{gap.heard[0]} of {gap.heard[1]} pods answer"
    return _GAPS[gap.reason]


def _known(measured: bool) -> str:
    return "measured" if measured else "predicted"
