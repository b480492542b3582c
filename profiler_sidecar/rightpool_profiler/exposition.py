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
    contract.CHIP_MEMORY_USED: ("gauge", "Peak of the chip's memory in use during the interval."),
    contract.CHIP_MEMORY_TOTAL: ("gauge", "Memory of the chip."),
    contract.CHIP_POWER: ("gauge", "Power drawn."),
    contract.CHIP_ENERGY: ("counter", "Energy used since the driver was loaded."),
    contract.CHIP_THROTTLE: ("gauge", "Share of time in which the clocks were held down, by reason."),
    contract.CHIP_ERRORS: ("counter", "Hardware errors, by kind."),
    contract.LINK_BYTES: ("counter", "Bytes moved over a link, by direction."),
    contract.STEP_SECONDS: ("histogram", "Duration of a training step."),
    contract.SAMPLES: ("counter", "Samples that this pod has consumed."),
    contract.STEPS: ("counter", "Training steps that this pod has made."),
    contract.STEP_SHARE: ("gauge", "Share of a step by what its time goes to."),
    contract.CHECKPOINT_TIMESTAMP: ("gauge", "Unix time of the last complete checkpoint."),
    contract.CHECKPOINT_SECONDS: ("gauge", "How long that checkpoint held up the program."),
    contract.SOURCE_UP: ("gauge", "1 while the source delivers."),
    contract.FIELD_QUALITY: ("gauge", "How a field is known."),
    "rightpool_profiler_datagrams_total": ("counter", "Datagrams from the agent, by whether they were taken."),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of one metric."""

    metric: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram without labels: counts per bucket, the last one beyond all bounds."""

    metric: str
    bounds: Sequence[float]
    counts: Sequence[int]
    total: float


def render(samples: Iterable[Sample], histograms: Iterable[Histogram] = ()) -> str:
    """The page: each family once, with its help and type, families and labels in a fixed order."""
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
    """Whole numbers without an exponent, so that counters stay exact."""
    return str(int(value)) if value == int(value) and abs(value) < 1e17 else repr(float(value))


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _escape_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")
