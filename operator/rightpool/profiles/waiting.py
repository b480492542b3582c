"""Where chips wait: for data, for the host, for each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rightpool.api.pool import LinkKind
from rightpool.profiles.bottleneck import Bottleneck, Case, Diagnosis
from rightpool.profiles.idle_findings import (
    BusyTimeUnknown,
    ChipsUnused,
    NoStepYet,
    NothingRuns,
    StillCompiles,
    WaitsForHost,
    WaitsForInput,
    WaitsForLink,
    WaitsForSave,
)
from rightpool.profiles.ranks import input_wait_share, saving_share, waits_for_input
from rightpool.profiles.sample import Field
from rightpool.profiles.shares import Shares

# Below this busy share a chip is idle.
_IDLE: Final = 0.05
# What is counted of a program from its first step on.
_WORK: Final = (Field.STEPS, Field.SAMPLES, Field.SAMPLES_PER_SECOND, Field.STEPS_PER_SECOND)
# From this share of the step on, waiting or communication limits the job; below it the chip's speed matters more. It
# lies between the share of small but chip-bound models (0.14, LSTM inference on an H200) and that of the least
# launch-bound model (0.27, GPT 125M at batch 2).
_LIMITING: Final = 0.2
_LIMITING_TOGETHER: Final = 0.3
# A program that compiles so much of the time has not begun.
_COMPILES: Final = 0.5
# Time in saves that is worth a word.
_SAVES: Final = 0.05
# From this share on, exposed communication limits the job even if busy time is not measured.
_DOMINANT: Final = 0.5
_HOST: Final = (
    Bottleneck.INPUT_BOUND,
    Bottleneck.CHECKPOINT_BOUND,
    Bottleneck.HOST_BOUND,
    Bottleneck.MEMORY_CAPACITY,
)
_WAITING: Final = (Bottleneck.COMMUNICATION_BOUND, *_HOST)
# Below this share of what a link can carry while chips wait for it, its bandwidth is not what they wait for.
_LINK_USED: Final = 0.3
# Links between chips that have counters, and how many times as many bytes over PCIe say that they are not used.
_PEERS: Final = (LinkKind.NVLINK, LinkKind.ICI, LinkKind.INFINITY_FABRIC, LinkKind.NEURON_LINK)
_BY_HOST: Final = 4.0


def idle(case: Case) -> Diagnosis | None:
    """Chips do nothing, no step is made, and the program neither waits for data nor saves: it hangs, or it has not
    begun."""
    busy, steps = case.values.get(Field.CHIP_BUSY), case.profile.readings.get(Field.STEPS)
    if busy is None or busy >= _IDLE:
        return None
    advancing = steps is not None and steps.high > steps.low
    if (
        advancing
        or waits_for_input(case)
        or saving_share(case) >= case.threshold(_LIMITING, Bottleneck.CHECKPOINT_BOUND)
        or (case.values.get(Field.SAMPLES_PER_SECOND) or case.values.get(Field.STEPS_PER_SECOND) or 0.0) > 0
    ):
        return None
    compiling = case.values.get(Field.COMPILING) or 0.0
    if compiling >= case.threshold(_COMPILES, Bottleneck.UNKNOWN):
        return Diagnosis(Bottleneck.UNKNOWN, StillCompiles(compiling))
    if not any(field in case.profile.readings for field in _WORK):
        return Diagnosis(Bottleneck.UNKNOWN, NoStepYet(case.profile.chips, busy))
    return Diagnosis(Bottleneck.IDLE, NothingRuns(case.profile.chips, busy))


def unused(case: Case) -> Diagnosis | None:
    """Chips of a pod on which nothing ever ran, while others worked: they are neither starved nor waited for."""
    count = case.values.get(Field.UNUSED_CHIPS)
    if not count:
        return None
    profile = case.profile
    return Diagnosis(Bottleneck.IDLE, ChipsUnused(count, profile.chips // max(profile.expected, 1)))


def waiting(case: Case, shares: Shares) -> Diagnosis | None:
    """The larger of communication and waiting, if it limits the job."""
    waited = input_wait_share(case)
    communication = _communication(case, shares, waited)
    gaps = case.values.get(Field.LAUNCH_GAPS) or 0.0
    idling = max(shares.idle, waited + saving_share(case), min(gaps, 1.0 - communication))
    largest, both = max(communication, idling), communication + idling
    if largest < case.threshold(_LIMITING, *_WAITING) and both < case.threshold(_LIMITING_TOGETHER, *_WAITING):
        return None
    if case.weighted(communication, Bottleneck.COMMUNICATION_BOUND) >= case.weighted(idling, *_HOST):
        return _over_link(case, communication)
    return _host(case, max(shares.input or 0.0, waited), idling)


def _communication(case: Case, shares: Shares, waited: float) -> float:
    """Exposed communication less what is waiting for ranks without data: of the rank that waits least, if it is known.

    A collective ends when the last rank has come, so what that one is exposed to is the link's.
    """
    least = case.values.get(Field.LEAST_EXPOSED)
    if not waits_for_input(case):
        return shares.communication
    return min(shares.communication, max(shares.communication - waited, 0.0) if least is None else least)


def without_shares(case: Case) -> Diagnosis | None:
    """The diagnosis if busy time or communication is not measured."""
    exposed, busy = case.values.get(Field.EXPOSED_COMMUNICATION), case.values.get(Field.CHIP_BUSY)
    waited = input_wait_share(case)
    if busy is not None:
        # Unmeasured communication keeps chips busy, so it is no part of the idle time.
        idling = max(1.0 - min(busy, 1.0), waited + saving_share(case))
        if idling >= case.threshold(_LIMITING, *_HOST):
            return _host(case, max(waited, min(case.values.get(Field.INPUT_WAIT) or 0.0, 1.0 - min(busy, 1.0))), idling)
    if exposed is not None and exposed >= case.threshold(_DOMINANT, Bottleneck.COMMUNICATION_BOUND):
        return Diagnosis(Bottleneck.COMMUNICATION_BOUND, WaitsForLink(case.profile.chips, exposed))
    return Diagnosis(Bottleneck.UNKNOWN, BusyTimeUnknown()) if busy is None else None


def _host(case: Case, waited: float, idling: float) -> Diagnosis:
    """The largest of what chips idle for."""
    waited, chips = min(waited, idling), case.profile.chips
    saved = min(saving_share(case), idling - waited)
    by_input = case.weighted(waited, Bottleneck.INPUT_BOUND)
    by_saves = case.weighted(saved, Bottleneck.CHECKPOINT_BOUND)
    by_host = case.weighted(idling - waited - saved, Bottleneck.HOST_BOUND, Bottleneck.MEMORY_CAPACITY)
    if by_input >= max(by_saves, by_host):
        return Diagnosis(Bottleneck.INPUT_BOUND, WaitsForInput(chips, idling, waited))
    if by_saves >= by_host:
        return Diagnosis(Bottleneck.CHECKPOINT_BOUND, WaitsForSave(chips, idling, saved))
    compiling = case.values.get(Field.COMPILING) or 0.0
    finding = WaitsForHost(
        chips,
        idling,
        waited if Field.INPUT_WAIT in case.profile.readings else None,
        saved if saved >= _SAVES else None,
        compiling if compiling >= case.threshold(_LIMITING, Bottleneck.HOST_BOUND) else None,
    )
    return Diagnosis(Bottleneck.HOST_BOUND, finding)


def _over_link(case: Case, communication: float) -> Diagnosis:
    """Exposed communication, judged against what the link can carry in that time."""
    link, chips = case.accelerator.intra_link, case.profile.chips
    kind = link.kind
    peer, pcie = case.values.get(Field.PEER_SENT), case.values.get(Field.PCIE_SENT)
    sent = peer if kind in _PEERS else pcie if kind is LinkKind.PCIE else None
    finding = WaitsForLink(chips, communication, kind)
    if kind in _PEERS and peer is not None and pcie is not None and pcie > _BY_HOST * peer:
        finding = replace(finding, over_host=pcie / (pcie + peer))
    elif sent is not None and communication > 0.0:
        capacity = link.bytes_per_second
        # Bytes that move while chips work are counted too, so this is an upper limit.
        used = sent / (communication * capacity) >= case.threshold(_LINK_USED, Bottleneck.COMMUNICATION_BOUND)
        finding = replace(finding, sent=sent, capacity=capacity, used=used)
    return Diagnosis(Bottleneck.COMMUNICATION_BOUND, finding)
