"""The Prometheus text format, version 0.0.4."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rightpool import contract

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_FAMILIES: Final[Mapping[str, tuple[str, str]]] = {
    contract.CHIP_BUSY: ("gauge", "Share of time in which any work was resident on the chip."),
    contract.CHIP_COMPUTE_ACTIVE: ("gauge", "Share of time in which SMs or TensorCores were active."),
    contract.CHIP_MATRIX_ACTIVE: ("gauge", "Share of time in which tensor cores or the MXU were active."),
    contract.CHIP_MEMORY_BANDWIDTH: ("gauge", "Share of the memory bandwidth in use."),
    contract.CHIP_OCCUPANCY: ("gauge", "Share of the chip's warp slots in use."),
    contract.CHIP_PIPE: ("gauge", "Share of time in which a pipe of the compute units was active, by pipe."),
    contract.CHIP_CLOCK: ("gauge", "Clock of the compute units, to the chip's maximum."),
    contract.CHIP_OTHERS: ("gauge", "Share of time in which SMs worked for processes that are not the pod's."),
    contract.CHIP_TEMPERATURE: ("gauge", "Temperature of the chip."),
    contract.CHIP_MEMORY_USED: ("gauge", "Peak of the chip's memory in use during the interval."),
    contract.CHIP_MEMORY_TOTAL: ("gauge", "Memory of the chip."),
    contract.CHIP_POWER: ("gauge", "Power drawn."),
    contract.CHIP_POWER_LIMIT: ("gauge", "Limit of power that the driver enforces."),
    contract.CHIP_ENERGY: ("counter", "Energy used since the driver was loaded."),
    contract.CHIP_THROTTLE: ("gauge", "Share of time in which the clocks were held down, by reason."),
    contract.CHIP_ERRORS: ("counter", "Hardware errors, by kind."),
    contract.CHIP_XID: ("gauge", "Highest critical XID error that was seen, 0 for none."),
    contract.CHIP_REPAIR: ("gauge", "Repair of the chip's memory: 0 none, 1 waits for a reset, 2 failed."),
    contract.CHIP_INFO: ("gauge", "1; the chip's name, how it is shared and the rank that uses it are labels."),
    contract.CHIPS_UNUSED: ("gauge", "Chips of the pod on which nothing ever ran, while others worked."),
    contract.SAVING: ("gauge", "Share of time in which the program stood still for a save, with what follows one."),
    contract.COMPILE: ("gauge", "Share of time in which the program compiled: torch.compile, or XLA."),
    contract.MEMORY_RETRIES: ("counter", "Allocations that had to free cached memory first."),
    contract.LINK_BYTES: ("counter", "Bytes moved over a link, by direction."),
    contract.STEP_SECONDS: ("histogram", "Duration of a training step."),
    contract.SAMPLES: ("counter", "Samples that this pod has consumed."),
    contract.STEPS: ("counter", "Training steps that this pod has made."),
    contract.STEP_SHARE: ("gauge", "Share of a step by what its time goes to; of each rank where there are several."),
    contract.CHECKPOINT_TIMESTAMP: ("gauge", "Unix time of the last complete checkpoint."),
    contract.CHECKPOINT_SECONDS: ("gauge", "How long that checkpoint held up the program."),
    contract.STEP_SAMPLES: ("gauge", "Samples that one step of this pod consumes."),
    contract.STEP_FLOPS: ("gauge", "Floating-point operations of the matrix products in one step of this pod."),
    contract.MODEL_INFO: ("gauge", "1; precision, dtype of the parameters and degrees of parallelism are labels."),
    contract.MODEL_PARAMETERS: ("gauge", "Parameters that are trained, of the whole model."),
    contract.MODEL_PARAMETER_BYTES: ("gauge", "Bytes of those parameters."),
    contract.MODEL_BYTES: ("gauge", "Bytes of all parameters, those included that are not trained."),
    contract.SOURCE_UP: ("gauge", "1 while the source delivers."),
    contract.FIELD_QUALITY: ("gauge", "How a field is known: measured, derived or missing."),
    "rightpool_profiler_datagrams_total": ("counter", "Datagrams from the agent, by whether they were taken."),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of one metric."""

    metric: str
    """Its name, as the contract has it."""
    labels: Mapping[str, str]
    """Values by name."""
    value: float
    """In the unit that the metric's name ends with."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram without labels: counts per bucket, the last one beyond all bounds."""

    metric: str
    """Its name, as the contract has it."""
    bounds: Sequence[float]
    """Upper ends of the buckets, ascending, n of them."""
    counts: Sequence[int]
    """Of each bucket by itself, n + 1 of them."""
    total: float
    """Sum of all values, in their unit."""


def render(samples: Iterable[Sample], histograms: Iterable[Histogram] = ()) -> str:
    """Render the page: each family once, with its help and type, families and labels in a fixed order."""
    families: dict[str, list[str]] = {}
    for sample in samples:
        if math.isfinite(sample.value):
            families.setdefault(sample.metric, []).append(_line(sample.metric, sample.labels, sample.value))
    for histogram in histograms:
        families[histogram.metric] = _histogram(histogram)
    page: list[str] = []
    for name, (kind, text) in _FAMILIES.items():
        if name in families:
            page += [f"# HELP {name} {_escape_help(text)}", f"# TYPE {name} {kind}", *families[name]]
    return "\n".join(page) + "\n" if page else ""


def _histogram(histogram: Histogram) -> list[str]:
    lines, running = [], 0
    bounds = [*(_number(bound) for bound in histogram.bounds), "+Inf"]
    for bound, count in zip(bounds, histogram.counts, strict=True):
        running += count
        lines.append(_line(f"{histogram.metric}_bucket", {"le": bound}, running))
    lines.append(_line(f"{histogram.metric}_sum", {}, histogram.total))
    lines.append(_line(f"{histogram.metric}_count", {}, running))
    return lines


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    if not labels:
        return f"{name} {_number(value)}"
    inner = ",".join(f'{label}="{_escape(text)}"' for label, text in sorted(labels.items()))
    return f"{name}{{{inner}}} {_number(value)}"


def _number(value: float) -> str:
    """Format a number; whole numbers without an exponent, so that counters stay exact."""
    return str(int(value)) if value == int(value) and abs(value) < 1e17 else repr(float(value))


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _escape_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")
