"""The diagnosis: one bottleneck, with its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rightpool.hardware.accelerator import Accelerator, Link
from rightpool.profiles.profile import Profile, Steadiness
from rightpool.profiles.sample import Field
from rightpool.profiles.shares import Attainable, Roofline, Shares, decompose, roofline


class Bottleneck(StrEnum):
    """The one class that limits a job now."""

    INPUT_BOUND = "InputBound"
    HOST_BOUND = "HostBound"
    COMMUNICATION_BOUND = "CommunicationBound"
    MEMORY_BANDWIDTH = "MemoryBandwidth"
    COMPUTE = "Compute"
    THROTTLED = "Throttled"
    STRAGGLER = "Straggler"
    IDLE = "Idle"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """evidence: the numbers, one sentence. lever: what helps, one sentence."""

    bottleneck: Bottleneck
    evidence: str
    lever: str


# Below this a chip has nothing to do.
_IDLE: Final = 0.05
# A share of the step that is lost to waiting or communication limits the job from here on: less of it, and the chip's
# own speed matters more. Between the fraction that small but chip-bound models leave (0.14, LSTM inference on an H200)
# and that of the mildest launch-bound one (0.27, GPT 125M at batch 2).
_LIMITING: Final = 0.2
_LIMITING_TOGETHER: Final = 0.3
# Share of the time with clocks held down that is a fault; and the share of the board's limit from which it is none:
# a chip at its power limit does all it can.
_THROTTLED: Final = 0.2
_AT_POWER_LIMIT: Final = 0.9
# The least busy chip against the mean: relative, and absolute so that quiet chips are no stragglers.
_STRAGGLING: Final = 0.8
_STRAGGLING_GAP: Final = 0.15
# Something is resident on the chip, and its compute units still do nothing: copies, waiting kernels.
_NOT_COMPUTING: Final = 0.05
# Nearness to a roof that says which one it is: alone, where only one is counted or communication is not; and at all.
_NEAR: Final = 0.5
_FAINT: Final = 0.1
# Compute units active although neither roof is near: arithmetic beside the matrix units.
_ACTIVE: Final = 0.5


def diagnose(
    profile: Profile,
    accelerator: Accelerator,
    *,
    link: Link | None = None,
    attainable: Attainable | None = None,
) -> Diagnosis:
    """The class that limits the job, as far as its counters tell; Unknown with what is missing otherwise.

    link: what carries the job's communication; None: between chips of one node, by the catalog. Being busy alone proves
    nothing: a loop of host-to-device copies is 100% busy and computes nothing.
    """
    if profile.steadiness is not Steadiness.STEADY:
        return _unsteady(profile)
    attainable = attainable or Attainable()
    shares = decompose(profile, attainable)
    return (
        _idle(profile)
        or _throttled(profile, accelerator)
        or _straggler(profile)
        or (_waiting(profile, shares, link or accelerator.intra_link) if shares else _partly(profile))
        or _not_computing(profile, accelerator)
        or _on_chip(profile, accelerator, shares, attainable)
    )


# --- before the shares -----------------------------------------------------------------------------------------------


def _unsteady(profile: Profile) -> Diagnosis:
    if profile.steadiness is Steadiness.ABSENT:
        evidence = "nothing was measured yet"
    elif profile.steadiness is Steadiness.STALE:
        evidence = "the newest reading is too old to say anything about now"
    else:
        evidence = f"readings after the warm-up cover {_percent(profile.covered)} of the {profile.window:g} s window"
    return Diagnosis(Bottleneck.UNKNOWN, evidence, "wait for a full window, or look at the profiler's sources")


def _idle(profile: Profile) -> Diagnosis | None:
    busy = profile.value(Field.CHIP_BUSY)
    if busy is None or busy >= _IDLE or (profile.value(Field.SAMPLES_PER_SECOND) or 0.0) > 0:
        return None
    evidence = f"{_chips(profile)} {_are(profile)} busy {_percent(busy)} of the time, and no samples are counted"
    return Diagnosis(Bottleneck.IDLE, evidence, "see whether the program hangs, or suspend the job")


def _throttled(profile: Profile, accelerator: Accelerator) -> Diagnosis | None:
    throttle = profile.value(Field.THROTTLE)
    if throttle is None or throttle < _THROTTLED:
        return None
    power, limit = profile.value(Field.POWER), accelerator.power_watts
    if power is not None and limit is not None and power >= _AT_POWER_LIMIT * limit:
        return None
    evidence = f"clocks are held down {_percent(throttle)} of the time"
    if power is not None:
        evidence += f" at {power:.0f} W" + (f" of {limit:.0f} W" if limit is not None else "")
    return Diagnosis(Bottleneck.THROTTLED, evidence, "see to cooling and power of the node, or run on another one")


def _straggler(profile: Profile) -> Diagnosis | None:
    mean, slowest = profile.value(Field.CHIP_BUSY), profile.value(Field.SLOWEST_CHIP_BUSY)
    if profile.chips < 2 or mean is None or slowest is None:
        return None
    if slowest >= _STRAGGLING * mean or mean - slowest < _STRAGGLING_GAP:
        return None
    evidence = f"one of {profile.chips} chips is busy {_percent(slowest)}, {_percent(mean)} is the mean"
    return Diagnosis(Bottleneck.STRAGGLER, evidence, "even out the work between replicas, or replace the slow node")


# --- by shares -------------------------------------------------------------------------------------------------------


def _waiting(profile: Profile, shares: Shares, link: Link) -> Diagnosis | None:
    """The largest of what keeps chips from work, where it is large enough."""
    if max(shares.communication, shares.idle) < _LIMITING and shares.communication + shares.idle < _LIMITING_TOGETHER:
        return None
    if shares.communication >= shares.idle:
        evidence = f"{_percent(shares.communication)} of the step is exposed communication over {link.kind.value}"
        return Diagnosis(
            Bottleneck.COMMUNICATION_BOUND, f"{evidence} on {profile.chips} chips", "fewer chips, or a faster link"
        )
    return _host(profile, shares.input, shares.host)


def _partly(profile: Profile) -> Diagnosis | None:
    """What can be said without either busy chips or communication."""
    exposed, busy = profile.value(Field.EXPOSED_COMMUNICATION), profile.value(Field.CHIP_BUSY)
    if busy is not None and 1.0 - busy >= _LIMITING:
        # Communication that is not known keeps chips busy: it is no part of this.
        waiting = min(profile.value(Field.INPUT_WAIT) or 0.0, 1.0 - busy)
        return _host(profile, waiting, 1.0 - busy - waiting)
    if exposed is not None and exposed >= 0.5:
        evidence = f"{_percent(exposed)} of the step is exposed communication on {profile.chips} chips"
        return Diagnosis(Bottleneck.COMMUNICATION_BOUND, evidence, "fewer chips, or a faster link")
    if busy is None:
        evidence = "how busy the chips are is not measured: waiting and work can't be told apart"
        return Diagnosis(Bottleneck.UNKNOWN, evidence, "give the profiler chip counters (NVML, DCGM or libtpu)")
    return None


def _host(profile: Profile, waiting: float, host: float) -> Diagnosis:
    idle = f"{_chips(profile)} {_are(profile)} idle {_percent(waiting + host)} of the step"
    if waiting >= host:
        evidence = f"{idle}, {_percent(waiting)} of it for input"
        return Diagnosis(Bottleneck.INPUT_BOUND, evidence, "more loader workers, faster storage, or cheaper chips")
    known = Field.INPUT_WAIT in profile.readings
    evidence = f"{idle}, " + (f"{_percent(waiting)} for input" if known else "input wait not measured")
    lever = "larger batches, CUDA graphs or compilation, a faster host, or cheaper chips"
    return Diagnosis(Bottleneck.HOST_BOUND, evidence, lever)


# --- on the chip -----------------------------------------------------------------------------------------------------


def _not_computing(profile: Profile, accelerator: Accelerator) -> Diagnosis | None:
    busy, active = profile.value(Field.CHIP_BUSY), profile.value(Field.COMPUTE_ACTIVE)
    if busy is None or active is None or active >= _NOT_COMPUTING:
        return None
    evidence = f"{accelerator.key} is busy {_percent(busy)}, and its compute units are active {_percent(active)}"
    return Diagnosis(
        Bottleneck.HOST_BOUND, f"{evidence}: copies or tiny kernels", "keep data on the chip; larger batches"
    )


def _on_chip(profile: Profile, accelerator: Accelerator, shares: Shares | None, attainable: Attainable) -> Diagnosis:
    """Which roof the chip is nearer to, as far as it is counted."""
    working = shares.chip if shares is not None else (profile.value(Field.CHIP_BUSY) or 1.0)
    near = shares.roofline if shares is not None else roofline(profile, working, attainable)
    if near.nearest is None:
        evidence = (
            f"{_chips(profile)} {_are(profile)} busy, which proves nothing: no counter tells what limits the work"
        )
        return Diagnosis(Bottleneck.UNKNOWN, evidence, "give the profiler DCGM, GPM or libtpu counters")
    if shares is None and near.nearest < _NEAR:
        evidence = f"exposed communication of {profile.chips} chips is not measured, and {_roofs(near)}"
        return Diagnosis(Bottleneck.UNKNOWN, evidence, "let the profiler take traces (spec.profiling.trace)")
    if near.matrix is None or near.bandwidth is None:
        if near.nearest < _NEAR:
            return Diagnosis(
                Bottleneck.UNKNOWN, f"only one roof is counted: {_roofs(near)}", "give the profiler the other counter"
            )
        return _roof(accelerator, near, compute=near.bandwidth is None)
    active = profile.value(Field.COMPUTE_ACTIVE)
    if near.nearest < _FAINT:
        if active is not None and active >= _ACTIVE:
            evidence = f"compute units of {accelerator.key} are active {_percent(active)} beside its matrix units"
            lever = "lower precision (bf16, TF32) to use the matrix units, or a chip with more FLOP/s"
            return Diagnosis(Bottleneck.COMPUTE, f"{evidence}: {_roofs(near)}", lever)
        return Diagnosis(
            Bottleneck.UNKNOWN, f"no roof is near: {_roofs(near)}", "take a trace, and look for many small kernels"
        )
    return _roof(accelerator, near, compute=near.matrix >= near.bandwidth)


def _roof(accelerator: Accelerator, near: Roofline, *, compute: bool) -> Diagnosis:
    evidence = f"while {accelerator.key} works, {_roofs(near)}"
    if compute:
        return Diagnosis(Bottleneck.COMPUTE, evidence, "lower precision, or a chip with more FLOP/s per dollar")
    lever = "fused kernels, lower precision, or a chip with more memory bandwidth per dollar"
    return Diagnosis(Bottleneck.MEMORY_BANDWIDTH, evidence, lever)


# --- words -----------------------------------------------------------------------------------------------------------


def _roofs(near: Roofline) -> str:
    known = []
    if near.bandwidth is not None:
        known.append(f"memory bandwidth is at {_percent(min(1.0, near.bandwidth))}")
    if near.matrix is not None:
        known.append(f"matrix units are at {_percent(min(1.0, near.matrix))}")
    return " and ".join(known) + " of what is attainable"


def _chips(profile: Profile) -> str:
    return f"{profile.chips} chips" if profile.chips > 1 else "the chip"


def _are(profile: Profile) -> str:
    return "are" if profile.chips > 1 else "is"


def _percent(ratio: float) -> str:
    return f"{100.0 * ratio:.0f}%"
