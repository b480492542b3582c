"""The accelerators that are compared: what the work would do on each, what rules it out, what it costs.

Rates and gates are the operator's own: planning evaluates the job on the pools of the cluster, and on one that is made
up for each accelerator without a pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from rightpool.api.altered import altered
from rightpool.api.estimate import Estimate
from rightpool.api.placement import CapacityType
from rightpool.api.pool_selection import PoolSelection
from rightpool.api.wording import share
from rightpool.api.work_unit import WorkUnit
from rightpool.hardware.accelerator import Accelerator
from rightpool.hardware.ownership import CostBook, Ownership, Sourced, ownership
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.evaluate import evaluate
from rightpool.planning.offers.evaluated import Evaluated
from rightpool.planning.offers.pool_gates import home_vendor, placed_vendor, pool_gate
from rightpool.planning.offers.rejection import Compared, Rejection, RejectionReason
from rightpool.planning.offers.shape import Shape
from rightpool.prediction.predictor import Origin
from rightpool.prediction.step_model import StepModelPredictor
from rightpool.profiles.sample import Field
from rightpool.reporting.candidate_texts import verdict_text

_ORIGINS: Final = {
    Origin.MEASURED_NOW: "measured",
    Origin.MEASURED_BEFORE: "measured before",
    Origin.MEASURED_IN_TRIAL: "measured in a trial",
    Origin.PREDICTED: "predicted",
}
_IMAGES: Final = frozenset({RejectionReason.VENDOR_NOT_DECLARED, RejectionReason.VARIANT_REFUSED})
# Whether there is room, whether a move pays, and what a chip-hour costs, is not what is asked here.
_NO_GATE: Final = frozenset({RejectionReason.AVOIDED, RejectionReason.PRICE_UNKNOWN})
# Kernels by a part of their name: what they are called, and the micro-architectures that they run on, or do not.
_HOPPER: Final = frozenset({"hopper"})
_BEFORE_AMPERE: Final = frozenset({"turing", "volta", "pascal", "maxwell", "kepler"})


@dataclass(frozen=True, slots=True)
class Checked:
    """What one gate says."""

    gate: str
    """What it is about: memory, precision, image, kernels, latency, or placement for all else."""
    passed: bool | None
    """None where it is not known."""
    evidence: str
    """Why; a sentence."""


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One accelerator, or one pool."""

    name: str
    """Of the pool; of an accelerator without one its key in the catalog."""
    chip: Accelerator
    """Its chips."""
    chips: int
    """How many there are."""
    rate: Estimate | None
    """Units of work a second of all of them; None where it is not known."""
    origin: str
    """Where that is from: measured, measured before, predicted."""
    unit: WorkUnit
    """What the rate counts."""
    checks: tuple[Checked, ...]
    """Gates that were asked."""
    owned: Ownership
    """What a chip-hour costs."""
    load: float
    """Share of its full power that a chip takes for this work."""
    load_source: str
    """Where that is from."""

    @property
    def passes(self) -> bool:
        """Whether no gate rules it out."""
        return all(one.passed is not False for one in self.checks)

    @property
    def dollars(self) -> float | None:
        """Of a million units of work; None where not known."""
        return None if self.rate is None else self.owned.dollars_a_million(self.rate.median, self.chips, self.load)

    @property
    def kwh(self) -> float | None:
        """Of the site, for a million units of work; None where not known."""
        return None if self.rate is None else self.owned.kwh_a_million(self.rate.median, self.chips, self.load)

    @property
    def kilograms(self) -> float | None:
        """CO2 of that power."""
        return None if self.kwh is None else self.kwh * self.owned.kg_per_kwh


@dataclass(frozen=True, slots=True)
class Question:
    """What is compared, for planning."""

    fleet: Fleet
    """With a pool for each accelerator, and a job for each run."""
    job: JobKey
    """By which the others are predicted."""
    pools: tuple[str, ...]
    """Names of those that are compared, in order."""
    runs: Mapping[str, JobKey]
    """Jobs that were measured, by their pool."""
    imagined: frozenset[str]
    """Pools that there are none of: no spec names them."""
    named: frozenset[str]
    """Of these, those that somebody else has, under this name."""
    image_known: bool
    """Whether the pod template is known, and with it the vendors that it is for."""
    kernels: tuple[str, ...]
    """Those that a trace of the job has seen; empty where there is none."""
    steps: Mapping[str, float]
    """Seconds within which 99 of 100 steps ended, by pool, where that was measured."""


def compared_rows(asked: Question, book: CostBook, limit: float | None = None) -> tuple[ComparedRow, ...]:
    """In the order in which they were asked for. limit: seconds for a step, 99 of 100."""
    jobs = {key: _let_everywhere(asked.fleet.jobs[key], asked.fleet.pools) for key in asked.runs.values()}
    fleet = replace(asked.fleet, jobs={**asked.fleet.jobs, **jobs})
    evaluated = evaluate(fleet, StepModelPredictor(), jobs.values())
    return tuple(_row(asked, book, limit, evaluated, name) for name in asked.pools)


def _let_everywhere(job: Job, pools: Iterable[str]) -> Job:
    """What the spec says of pools is asked by itself: so that what a pool would do is known where it is ruled out."""
    everywhere = PoolSelection(allow=tuple(sorted(pools)))
    placement = job.spec.placement.model_copy(update={"pools": everywhere})
    return altered(job, spec=job.spec.model_copy(update={"placement": placement}))


def _row(
    asked: Question, book: CostBook, limit: float | None, evaluated: Mapping[JobKey, Evaluated], name: str
) -> ComparedRow:
    pool = asked.fleet.pools[name]
    source = asked.runs.get(name, asked.job)
    job, found = asked.fleet.jobs[source], evaluated[source]
    candidate = _candidate(found, name) if name not in asked.runs else found.current()
    rate = None if candidate is None else candidate.throughput
    chips = 1 if candidate is None else candidate.placement.chips
    if (count := book.of(pool.accelerator.key).count) is not None:
        rate, chips = None if rate is None else rate.times(count / chips), count
    load, load_source = _load(job, asked.fleet.pools)
    price = None
    if candidate is not None and name not in asked.imagined:
        per_chip = pool.price.of(candidate.placement.capacity)
        spot = ", spot" if candidate.placement.capacity is CapacityType.SPOT else ""
        price = None if per_chip is None else Sourced(per_chip, f"pool {name}{spot}")
    return ComparedRow(
        name=pool.accelerator.key if name in asked.imagined - asked.named else name,
        chip=pool.accelerator,
        chips=chips,
        rate=rate,
        origin="" if candidate is None or rate is None else _ORIGINS[candidate.origin],
        unit=WorkUnit.SAMPLES if candidate is None else candidate.unit,
        checks=tuple(_checks(asked, job, pool, candidate, limit)),
        owned=ownership(pool.accelerator, book, price),
        load=load,
        load_source=load_source,
    )


def _candidate(found: Evaluated, pool: str) -> Candidate | None:
    """The cheapest of those that no gate rules out, else the largest that would be possible."""
    there = [found.candidate(entry) for entry in found.entries if found.placement(entry).pool == pool]

    def order(one: Candidate) -> tuple[bool, bool, float, int]:
        cost = one.cost_per_million
        ruled_out = _gate_of(one.rejection) is not None
        return ruled_out, one.throughput is None, float("inf") if cost is None else cost.median, -one.placement.chips

    return min(there, key=order, default=None)


def _gate_of(rejection: Rejection | None) -> str | None:
    """None of what is none: that staying is better."""
    if rejection is None or isinstance(rejection, Compared) or rejection.reason in _NO_GATE:
        return None
    if rejection.reason in _IMAGES:
        return "image"
    return {RejectionReason.MEMORY: "memory", RejectionReason.PRECISION: "precision"}.get(
        rejection.reason, "performance" if rejection.reason is RejectionReason.NOT_PREDICTABLE else "placement"
    )


def _checks(
    asked: Question, job: Job, pool: Pool, candidate: Candidate | None, limit: float | None
) -> Iterable[Checked]:
    failed = None if candidate is None else _gate_of(candidate.rejection)
    if candidate is None:
        yield Checked("placement", False, f"{pool.name} can't give a size that the job can have")
    elif failed is not None:
        yield Checked(failed, False, verdict_text(candidate))
    elif candidate.throughput is None:
        yield Checked("performance", False, "nothing of the job is measured that predicts a rate there")
    else:
        yield from _fitting(job, pool)
    yield _image(asked, job, pool)
    if (kernels := _kernels(asked, job, pool)) is not None:
        yield kernels
    if limit is not None:
        yield _latency(asked.steps.get(pool.name), limit)


def _fitting(job: Job, pool: Pool) -> Iterable[Checked]:
    profile, chip = job.observed.profile, pool.accelerator
    used = None if profile is None else profile.value(Field.MEMORY_USED)
    precision = None if profile is None else profile.traits.precision
    if used is None:
        yield Checked("memory", None, "what the job uses was not measured")
    else:
        yield Checked("memory", True, f"{used / 2**30:.1f} of {chip.memory_bytes / 2**30:.1f} GiB")
    if precision is None:
        yield Checked("precision", None, "what the job computes in is not known")
    else:
        yield Checked("precision", True, precision)


def _image(asked: Question, job: Job, pool: Pool) -> Checked:
    vendor = pool.accelerator.vendor
    if not asked.image_known:
        ran = {asked.fleet.pools[name].accelerator.vendor for name in asked.runs}
        if vendor in ran:
            return Checked("image", True, f"it ran on {vendor.name} chips")
        return Checked("image", None, f"it ran on no {vendor.name} chips: is there an image for them?")
    shape = Shape.of(job)
    if pool.name in asked.imagined:
        shape = shape._replace(allow=(), deny=(), labels=())
    here = job.state.revision
    placed = placed_vendor(here, None if here is None else asked.fleet.pools.get(here.placement.pool))
    rejection = pool_gate(shape, pool, home_vendor(shape, asked.fleet.pools.values(), placed))
    if rejection is not None and not isinstance(rejection, Compared):
        return Checked(_gate_of(rejection) or "placement", False, rejection.text())
    variant = job.variant(vendor.name) is not None
    return Checked("image", True, f"the variant for {vendor.name}" if variant else "that of the job")


def _kernels(asked: Question, job: Job, pool: Pool) -> Checked | None:
    """What the trace saw that other chips may not have; None where it saw nothing of the kind."""
    third = any("FlashAttnFwdSm90" in name or "FlashAttnBwdSm90" in name for name in asked.kernels)
    second = any(("flash_fwd" in name or "flash_bwd" in name) and "pytorch_flash" not in name for name in asked.kernels)
    if not third and not second:
        return None
    what, chip = "FlashAttention 3" if third else "FlashAttention 2", pool.accelerator
    home = None if job.state.revision is None else asked.fleet.pools.get(job.state.revision.placement.pool)
    if home is not None and chip.vendor != home.accelerator.vendor:
        return Checked("kernels", None, f"the trace has {what}: does the image for {chip.vendor.name} bring its like?")
    runs = chip.arch in _HOPPER if third else chip.arch not in _BEFORE_AMPERE
    needs = "Hopper" if third else "Ampere or newer"
    return Checked("kernels", runs, f"the trace has {what}, which needs {needs}; this is {chip.arch}")


def _latency(measured: float | None, limit: float) -> Checked:
    if measured is None:
        return Checked("latency", False, "no step was timed there: measure one board by `rightpool bench run`")
    text = f"99 of 100 steps within {measured:g} s"
    return Checked("latency", measured <= limit, f"{text}; {limit:g} s is the limit")


def _load(job: Job, pools: Mapping[str, Pool]) -> tuple[float, str]:
    """Share of full power, by what the job takes where it was measured."""
    profile, here = job.observed.profile, job.state.revision
    watts = None if profile is None else profile.value(Field.POWER)
    home = None if here is None else pools.get(here.placement.pool)
    full = None if home is None else home.accelerator.power_watts
    if watts is None or full is None or home is None:
        return 1.0, "at full power: none was measured"
    load = min(1.0, watts / full)
    return load, f"{watts:.0f} W measured on {home.accelerator.key}, {share(load)} of full power"
