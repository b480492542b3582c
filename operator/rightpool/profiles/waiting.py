"""Where chips wait: for data, for the host, for each other."""

from __future__ import annotations

from typing import Final

from rightpool.api.pool import LinkKind
from rightpool.profiles.bottleneck import Bottleneck, Case, Diagnosis, percent
from rightpool.profiles.ranks import input_wait_share, waits_for_input
from rightpool.profiles.sample import Field
from rightpool.profiles.shares import Shares

# Below this busy share a chip is idle.
_IDLE: Final = 0.05
# From this share of the step on, waiting or communication limits the job; below it the chip's speed matters more. It
# lies between the share of small but chip-bound models (0.14, LSTM inference on an H200) and that of the least
# launch-bound model (0.27, GPT 125M at batch 2).
_LIMITING: Final = 0.2
_LIMITING_TOGETHER: Final = 0.3
# A program that compiles so much of the time has not begun.
_COMPILES: Final = 0.5
# From this share on, exposed communication limits the job even if busy time is not measured.
_DOMINANT: Final = 0.5
_HOST: Final = (Bottleneck.INPUT_BOUND, Bottleneck.HOST_BOUND, Bottleneck.MEMORY_CAPACITY)
_WAITING: Final = (Bottleneck.COMMUNICATION_BOUND, *_HOST)
# Below this share of what a link can carry while chips wait for it, its bandwidth is not what they wait for.
_LINK_USED: Final = 0.3
# Links between chips that have counters, and how many times as many bytes over PCIe say that they are not used.
_PEERS: Final = (LinkKind.NVLINK, LinkKind.ICI, LinkKind.INFINITY_FABRIC, LinkKind.NEURON_LINK)
_BY_HOST: Final = 4.0
_FEWER: Final = "fewer chips, or a faster link"


def idle(case: Case) -> Diagnosis | None:
    """Chips do nothing, no step is made, and the program does not wait for data: it hangs, or it still compiles."""
    busy, steps = case.value(Field.CHIP_BUSY), case.profile.readings.get(Field.STEPS)
    if busy is None or busy >= _IDLE:
        return None
    advancing = steps is not None and steps.high > steps.low
    if (
        advancing
        or waits_for_input(case)
        or (case.value(Field.SAMPLES_PER_SECOND) or case.value(Field.STEPS_PER_SECOND) or 0.0) > 0
    ):
        return None
    compiling = case.value(Field.COMPILING) or 0.0
    if compiling >= case.threshold(_COMPILES, Bottleneck.UNKNOWN):
        evidence = f"the program compiled {percent(compiling)} of the time, and made no step"
        return Diagnosis(Bottleneck.UNKNOWN, evidence, "wait for its first steps, or look at its log")
    evidence = f"{case.chips} busy {percent(busy)} of the time, and no samples are counted"
    return Diagnosis(Bottleneck.IDLE, evidence, "see whether the program hangs, or suspend the job")


def unused(case: Case) -> Diagnosis | None:
    """Chips of a pod on which nothing ever ran, while others worked: they are neither starved nor waited for."""
    count = case.value(Field.UNUSED_CHIPS)
    if not count:
        return None
    profile = case.profile
    chips = profile.chips // max(profile.expected, 1)
    evidence = f"{count:.0f} of {chips} chips of a pod {'is' if count == 1 else 'are'} unused: nothing ever ran there"
    lever = "start one process for each chip, such as by torchrun --nproc-per-node, or ask for fewer chips"
    return Diagnosis(Bottleneck.IDLE, evidence, lever)


def waiting(case: Case, shares: Shares) -> Diagnosis | None:
    """The larger of communication and waiting, if it limits the job."""
    waited = input_wait_share(case)
    communication = _communication(case, shares, waited)
    gaps = case.value(Field.LAUNCH_GAPS) or 0.0
    idling = max(shares.idle, waited, min(gaps, 1.0 - communication))
    largest, both = max(communication, idling), communication + idling
    if largest < case.threshold(_LIMITING, *_WAITING) and both < case.threshold(_LIMITING_TOGETHER, *_WAITING):
        return None
    if case.weighted(communication, Bottleneck.COMMUNICATION_BOUND) >= case.weighted(idling, *_HOST):
        return _over_link(case, communication)
    return _host(case, max(shares.input, waited), idling)


def _communication(case: Case, shares: Shares, waited: float) -> float:
    """Exposed communication less what is waiting for ranks without data: of the rank that waits least, if it is known.

    A collective ends when the last rank has come, so what that one is exposed to is the link's.
    """
    least = case.value(Field.LEAST_EXPOSED)
    if not waits_for_input(case):
        return shares.communication
    return min(shares.communication, max(shares.communication - waited, 0.0) if least is None else least)


def without_shares(case: Case) -> Diagnosis | None:
    """The diagnosis if busy time or communication is not measured."""
    exposed, busy = case.value(Field.EXPOSED_COMMUNICATION), case.value(Field.CHIP_BUSY)
    waited = input_wait_share(case)
    if busy is not None:
        # Unmeasured communication keeps chips busy, so it is no part of the idle time.
        idling = max(1.0 - min(busy, 1.0), waited)
        if idling >= case.threshold(_LIMITING, *_HOST):
            return _host(case, max(waited, min(case.value(Field.INPUT_WAIT) or 0.0, 1.0 - min(busy, 1.0))), idling)
    if exposed is not None and exposed >= case.threshold(_DOMINANT, Bottleneck.COMMUNICATION_BOUND):
        evidence = f"{percent(exposed)} of the step is exposed communication on {case.profile.chips} chips"
        return Diagnosis(Bottleneck.COMMUNICATION_BOUND, evidence, _FEWER)
    if busy is None:
        evidence = "how busy the chips are is not measured: waiting and work can't be told apart"
        return Diagnosis(Bottleneck.UNKNOWN, evidence, "give the profiler chip counters (NVML or DCGM)")
    return None


def _host(case: Case, waited: float, idling: float) -> Diagnosis:
    waited = min(waited, idling)
    rest = idling - waited
    evidence = f"{case.chips} idle {percent(idling)} of the step"
    if case.weighted(waited, Bottleneck.INPUT_BOUND) >= case.weighted(
        rest, Bottleneck.HOST_BOUND, Bottleneck.MEMORY_CAPACITY
    ):
        evidence = f"{evidence}, {percent(waited)} of it for input"
        return Diagnosis(Bottleneck.INPUT_BOUND, evidence, "more loader workers, faster storage, or cheaper chips")
    known = Field.INPUT_WAIT in case.profile.readings
    evidence += f", {percent(waited)} for input" if known else ", input wait not measured"
    lever = "larger batches, CUDA graphs or compilation, a faster host, or cheaper chips"
    compiling = case.value(Field.COMPILING) or 0.0
    if compiling >= case.threshold(_LIMITING, Bottleneck.HOST_BOUND):
        evidence += f", and the program compiles {percent(compiling)} of the time"
        lever = "batches of the same shape, or dimensions marked as dynamic: each new shape is compiled"
    return Diagnosis(Bottleneck.HOST_BOUND, evidence, lever)


def _over_link(case: Case, communication: float) -> Diagnosis:
    """Exposed communication, judged against what the link can carry in that time."""
    kind, chips = case.link.kind, case.profile.chips
    peer, pcie = case.value(Field.PEER_SENT), case.value(Field.PCIE_SENT)
    sent = peer if kind in _PEERS else pcie if kind is LinkKind.PCIE else None
    evidence = f"{percent(communication)} of the step is exposed communication over {kind.value} on {chips} chips"
    if kind in _PEERS and peer is not None and pcie is not None and pcie > _BY_HOST * peer:
        lever = f"see why chips do not use {kind.value} (peer access), or fewer chips"
        moved = f"but {percent(pcie / (pcie + peer))} of the bytes go over PCIe"
        return Diagnosis(Bottleneck.COMMUNICATION_BOUND, f"{evidence}, {moved}", lever)
    if sent is None or communication <= 0.0:
        return Diagnosis(Bottleneck.COMMUNICATION_BOUND, evidence, _FEWER)
    # Bytes that move while chips work are counted too, so this is an upper limit.
    used = sent / (communication * case.link.bytes_per_second)
    evidence += f", which carries {sent / 1e9:.1f} GB/s a chip of {case.link.bytes_per_second / 1e9:.0f}"
    if used < case.threshold(_LINK_USED, Bottleneck.COMMUNICATION_BOUND):
        lever = "larger messages (buckets, batches, gradient accumulation) or fewer chips; bandwidth is not the limit"
        return Diagnosis(Bottleneck.COMMUNICATION_BOUND, evidence, lever)
    return Diagnosis(Bottleneck.COMMUNICATION_BOUND, evidence, _FEWER)
