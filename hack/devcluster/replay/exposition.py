"""The pages of a pod's sidecar: the metrics of the contract, and the profile as JSON.

A page has two parts. The chips' gauges depend on a few numbers and on noise that has a few variants, one every ten
seconds, so similar pods share the rendered text. Counters are rendered for each request.
"""

import random
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

from devcluster.replay.gang import BUCKETS, NOISE, Gang, Odometer, unit
from devcluster.replay.pod import SimulatedPod
from rightpool import contract

GIB: Final = 2**30
SOURCE: Final = "replay"
_VARIANTS: Final = 16
_NOISE_SECONDS: Final = 10.0

_random = random.Random(0)
_WAVES: Final = tuple(
    _random.uniform(-NOISE, NOISE) for _ in range(509)
)  # a prime, so that strides do not repeat early


@dataclass(frozen=True, slots=True)
class Face:
    """Gauges of every chip of a pod, before noise. Ratios 0–1, bytes, watts; None: unknown and absent."""

    busy: float | None
    compute: float | None
    matrix: float | None
    bandwidth: float | None
    memory_used: float | None
    memory_total: float
    watts: float | None
    throttle: float


# Name, attribute, and the largest deviation by noise; None: no noise.
_GAUGES: Final = (
    (contract.CHIP_BUSY, "busy", 1.0),
    (contract.CHIP_COMPUTE_ACTIVE, "compute", 1.0),
    (contract.CHIP_MATRIX_ACTIVE, "matrix", 1.0),
    (contract.CHIP_MEMORY_BANDWIDTH, "bandwidth", 1.0),
    (contract.CHIP_MEMORY_USED, "memory_used", None),
    (contract.CHIP_MEMORY_TOTAL, "memory_total", None),
    (contract.CHIP_POWER, "watts", 2000.0),
)


def face_of(pod: SimulatedPod, gang: Gang) -> Face | None:
    """The gauges of a pod; None if the table has no row or no step was done."""
    speed = gang.speed
    if speed is None:
        return None
    row, faults = speed.row, gang.faults[pod.uid]
    used = row.memory_used_gib if pod.play.memory_gib is None else pod.play.memory_gib
    stopped = gang.formed_at is None
    # If another pod is slower, this one waits; if another one is gone, its kernels spin in a collective.
    waits = min(fault.throughput for fault in gang.faults.values()) / faults.throughput
    work = 0.0 if stopped else speed.work
    return Face(
        busy=1.0 if stopped else _scaled(row.chip_busy, waits),
        compute=_scaled(row.compute_active, 0.0 if stopped else waits),
        matrix=_scaled(row.matrix_active, work),
        bandwidth=_scaled(row.memory_bandwidth, work),
        memory_used=None if used is None else used * GIB,
        memory_total=row.memory_total_gib * GIB,
        watts=speed.watts or None,
        throttle=faults.throttle,
    )


def _scaled(share: float | None, factor: float) -> float | None:
    return None if share is None else min(1.0, share * factor)


@lru_cache(maxsize=4096)
def _chip_gauges(face: Face, chips: int, variant: int) -> str:
    lines: list[str] = []
    for index, (name, attribute, ceiling) in enumerate(_GAUGES):
        value: float | None = getattr(face, attribute)
        if value is None:
            continue
        lines.append(f"# TYPE {name} gauge")
        for chip in range(chips):
            wave = _WAVES[(variant * 53 + chip * 17 + index * 101) % len(_WAVES)]
            shown = value if ceiling is None else min(ceiling, value * (1 + wave))
            lines.append(f'{name}{{chip="{chip}"}} {shown:.6g}' if ceiling else f'{name}{{chip="{chip}"}} {shown:.0f}')
    lines.append(f"# TYPE {contract.CHIP_THROTTLE} gauge")
    lines += [
        f'{contract.CHIP_THROTTLE}{{chip="{c}",reason="software_thermal"}} {face.throttle:g}' for c in range(chips)
    ]
    return "\n".join(lines) + "\n"


def _variant(pod: SimulatedPod, now: float) -> int:
    return (int(unit(pod.uid) * _VARIANTS) + int(now / _NOISE_SECONDS)) % _VARIANTS


def shares(pod: SimulatedPod, gang: Gang) -> dict[str, float]:
    """Shares of the step: without a trace only the wait for input, which the program's loader reports.

    Idle is the time in which the chip is neither busy nor waits for input.
    """
    assert gang.speed is not None
    if not pod.play.trace:
        return {contract.PART_INPUT: gang.speed.input_wait}
    waiting = {
        contract.PART_EXPOSED_COMMUNICATION: gang.speed.exposed,
        contract.PART_INPUT: gang.speed.input_wait,
        contract.PART_IDLE: max(0.0, 1 - (gang.speed.row.chip_busy or 1.0) - gang.speed.input_wait),
    }
    return {contract.PART_COMPUTE: max(0.0, 1 - sum(waiting.values())), **waiting}


def metrics(pod: SimulatedPod, gang: Gang, now: float) -> str:
    """The page of /metrics. For a pod without a row in the table it only has the failure of its source."""
    head = f'# TYPE {contract.SOURCE_UP} gauge\n{contract.SOURCE_UP}{{source="{SOURCE}"}} {int(gang.problem is None)}\n'
    face = face_of(pod, gang)
    if face is None:
        return head
    seen = gang.since_joining(pod.uid, now)
    page = [head, _chip_gauges(face, pod.chips, _variant(pod, now)), _steps(pod, gang, seen), _save(gang, now)]
    if face.watts is not None:
        page.append(f"# TYPE {contract.CHIP_ENERGY} counter\n")
        page += [f'{contract.CHIP_ENERGY}{{chip="{chip}"}} {seen.joules:.1f}\n' for chip in range(pod.chips)]
    page.append(f"# TYPE {contract.STEP_SHARE} gauge\n")
    page += [f'{contract.STEP_SHARE}{{part="{part}"}} {share:.5f}\n' for part, share in shares(pod, gang).items()]
    page.append(_qualities(_names(face, gang.saved_at(now) is not None)))
    return "".join(page)


def samples_of(pod: SimulatedPod, gang: Gang, seen: Odometer) -> int:
    """Number of samples that this pod's process has consumed."""
    return 0 if gang.speed is None else int(seen.steps) * gang.speed.row.batch_per_chip * pod.chips


_STEPS: Final = "".join(
    [
        f"# TYPE {contract.STEPS} counter\n{contract.STEPS} %d\n",
        f"# TYPE {contract.SAMPLES} counter\n{contract.SAMPLES} %d\n",
        f"# TYPE {contract.STEP_SECONDS} histogram\n",
        *(f'{contract.STEP_SECONDS}_bucket{{le="{bound:g}"}} %d\n' for bound in BUCKETS),
        f'{contract.STEP_SECONDS}_bucket{{le="+Inf"}} %d\n',
        f"{contract.STEP_SECONDS}_count %d\n{contract.STEP_SECONDS}_sum %.4f\n",
    ]
)


def _steps(pod: SimulatedPod, gang: Gang, seen: Odometer) -> str:
    steps = int(seen.steps)
    return _STEPS % (steps, samples_of(pod, gang, seen), *accumulate(seen.buckets), steps, seen.stepped)


def _save(gang: Gang, now: float) -> str:
    saved = gang.saved_at(now)
    if saved is None:
        return ""
    return (
        f"# TYPE {contract.CHECKPOINT_TIMESTAMP} gauge\n{contract.CHECKPOINT_TIMESTAMP} {saved:.3f}\n"
        f"# TYPE {contract.CHECKPOINT_SECONDS} gauge\n{contract.CHECKPOINT_SECONDS} {gang.save_seconds() or 0:g}\n"
    )


def _names(face: Face, saved: bool) -> tuple[str, ...]:
    """Names of the metrics on the page."""
    shown = [name for name, attribute, _ in _GAUGES if getattr(face, attribute) is not None]
    shown += [contract.CHIP_ENERGY] if face.watts is not None else []
    shown += [contract.CHECKPOINT_TIMESTAMP] if saved else []
    return (
        *shown,
        contract.CHIP_THROTTLE,
        contract.STEPS,
        contract.STEP_SECONDS,
        contract.SAMPLES,
        contract.STEP_SHARE,
    )


@lru_cache(maxsize=64)
def _qualities(names: tuple[str, ...]) -> str:
    lines = [f'{contract.FIELD_QUALITY}{{field="{name}",quality="{contract.QUALITY_MEASURED}"}} 1\n' for name in names]
    return f"# TYPE {contract.FIELD_QUALITY} gauge\n" + "".join(lines)


def profile(pod: SimulatedPod, gang: Gang, now: float) -> dict[str, Any]:
    """The page of /profile, in the format of the real sidecar."""
    face, saved, request = face_of(pod, gang), gang.saved_at(now), gang.save_request
    fields: dict[str, Any] = {}
    if face is not None and gang.speed is not None:
        seen = gang.since_joining(pod.uid, now)
        values: dict[str, list[tuple[dict[str, str], float]]] = {
            name: [({contract.LABEL_CHIP: str(chip)}, getattr(face, attribute)) for chip in range(pod.chips)]
            for name, attribute, _ in _GAUGES
            if getattr(face, attribute) is not None
        }
        values[contract.STEPS] = [({}, int(seen.steps))]
        values[contract.SAMPLES] = [({}, samples_of(pod, gang, seen))]
        values[contract.STEP_SHARE] = [
            ({contract.LABEL_PART: part}, share) for part, share in shares(pod, gang).items()
        ]
        for name, found in values.items():
            listed = [{"labels": labels, "value": value} for labels, value in found]
            fields[name] = {"quality": contract.QUALITY_MEASURED, "values": listed}
    checkpoint: dict[str, Any] = {"mode": pod.checkpoint_mode, "savedAt": saved}
    if request is not None:
        state = gang.save_state(pod.checkpoint_mode, now)
        checkpoint |= {"id": request.id, "requestedAt": request.at, "state": state}
    return {"fields": fields, "sources": {SOURCE: gang.problem is None}, "processes": [], "checkpoint": checkpoint}
