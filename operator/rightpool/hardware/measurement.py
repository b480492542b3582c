"""What the benchmark of a calibration has printed, and whether it can be true.

The pod is no trusted party: anybody may have chosen its image. So every number is checked, and what cannot be is
refused with a reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from rightpool.api.conditions import Reason
from rightpool.api.pool import MAX_CHIPS_PER_NODE, MAX_LINKS, Calibration, MeasuredLink, Teraflops
from rightpool.api.quantities import format_quantity
from rightpool.api.units import write_unix_time
from rightpool.api.value_object import value_object
from rightpool.hardware.accelerator import Accelerator
from rightpool.hardware.catalog import Catalog

FORMAT: Final = "rightpoolBenchmark"
VERSION: Final = 1
# Rates may be above a data sheet by this much: clocks above those that it counts with, and the error of timing.
ABOVE: Final = 1.05
# The best of several runs may be above the median by this factor; more, and something else works on the chip.
STEADY: Final = 2.0
# Two dtypes may differ by this factor in the share of the data sheet that they reach.
APART: Final = 5.0
# Memory that the driver reports against the catalog's figure.
MEMORY: Final = 0.15
_MIB: Final = 2**20
_WORDS: Final = 253
_MESSAGE: Final = 2000
_DIGITS: Final = 4
# Beyond these nothing is a rate of a chip, and none fits into the API.
_LEAST: Final = 1e6
_MOST: Final = 1e20


class MeasurementError(ValueError):
    """The log holds no results. The message says what it holds instead."""


@value_object
class Rate:
    """One rate, as often as it was measured."""

    median: float
    """Units a second; may be anything that a program can print."""

    best: float
    """The highest."""

    @property
    def valid(self) -> bool:
        """Whether it is a rate at all."""
        return all(_LEAST <= value < _MOST for value in (self.median, self.best))


@value_object
class Measurement:
    """The results of one run."""

    platform: str
    """gpu, tpu or cpu."""

    device: str
    """The chip's name."""

    memory_bytes: float | None
    """Of one chip; None where the framework does not tell."""

    software: str
    """Framework and versions."""

    chips: int
    """How many the program had."""

    flops: Mapping[str, Rate]
    """FLOP/s by dtype."""

    copy: Rate | None
    """Bytes a second, read and written."""

    all_reduce: Mapping[int, Rate]
    """Bus bandwidth by number of chips, bytes a second."""

    errors: Mapping[str, str]
    """Why something is missing, by dtype, copy or allReduce."""


def read_measurement(log: str) -> Measurement:
    """The last line of a log that holds results. Raises MeasurementError where none does."""
    for line in reversed(log.splitlines()):
        body = _parsed(line)
        if body is None or FORMAT not in body:
            continue
        if body[FORMAT] != VERSION:
            raise MeasurementError(f"the results are of version {str(body[FORMAT])[:20]}, and not {VERSION}")
        try:
            return _measurement(body)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise MeasurementError(f"the results can't be read ({type(error).__name__}: {error})"[:300]) from error
    last = next((line.strip()[:300] for line in reversed(log.splitlines()) if line.strip()), "none")
    raise MeasurementError(f"the benchmark printed no results; its last line: {last}")


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _measurement(body: Mapping[str, Any]) -> Measurement:
    memory = body["memoryBytes"]
    return Measurement(
        platform=_text(body["platform"]),
        device=_text(body["device"]),
        memory_bytes=None if memory is None else float(memory),
        software=_text(body["software"]),
        chips=int(body["chips"]),
        flops={_text(dtype): _rate(rate) for dtype, rate in body["flops"].items()},
        copy=None if body["copy"] is None else _rate(body["copy"]),
        all_reduce={int(entry["chips"]): _rate(entry) for entry in body["allReduce"]},
        errors={_text(what): _text(error) for what, error in body["errors"].items()},
    )


def _text(value: Any) -> str:
    """One line without control characters, not longer than the API takes it."""
    return "".join(letter if letter.isprintable() else " " for letter in str(value))[:_WORDS]


def _rate(body: Mapping[str, Any]) -> Rate:
    return Rate(float(body["median"]), float(body["best"]))


# --- whether it can be true ------------------------------------------------------------------------------------------


def judged(measured: Measurement, chip: Accelerator, chips: int, catalog: Catalog) -> tuple[Reason, str]:
    """Measured with what was, or why it is not believed.

    chip: as the catalog or spec.chip says it. chips: how many the program was given.
    """
    for reason, problems in (
        (Reason.MEASUREMENT_INVALID, _invalid(measured)),
        (Reason.MEASUREMENT_CONTRADICTORY, _other_chip(measured, chip, chips, catalog)),
        (Reason.ABOVE_PEAK, _above(measured, chip)),
        (Reason.MEASUREMENT_CONTRADICTORY, _contradictory(measured, chip)),
    ):
        found = "; ".join(problems)
        if found:
            return reason, found
    return Reason.MEASURED, _message(measured, chip)


def _rates(measured: Measurement) -> Iterator[tuple[str, Rate]]:
    yield from measured.flops.items()
    if measured.copy is not None:
        yield "the copy", measured.copy
    for chips, rate in measured.all_reduce.items():
        yield f"the all-reduce of {chips} chips", rate


def _invalid(measured: Measurement) -> Iterator[str]:
    for name, rate in _rates(measured):
        if not rate.valid:
            yield f"{name} has a rate of {rate.median:g}, at best {rate.best:g}, which is none"
    if not measured.flops and measured.copy is None:
        why = "; ".join(f"{what}: {error}" for what, error in measured.errors.items())
        yield f"nothing was measured ({why or 'the benchmark says not why'})"


def _other_chip(measured: Measurement, chip: Accelerator, chips: int, catalog: Catalog) -> Iterator[str]:
    benchmark = chip.vendor.benchmark
    if benchmark is not None and measured.platform != benchmark.platform:
        yield f"it ran on {measured.platform}, and {chip.key} is {benchmark.platform}"
    if measured.chips != chips:
        yield f"it ran on {measured.chips} of {chips} chips"
    if any(not 2 <= count <= chips for count in measured.all_reduce) or len(measured.all_reduce) > MAX_LINKS:
        yield f"all-reduces of {', '.join(map(str, measured.all_reduce))} chips were measured on {chips}"
    if chip.vendor.made_up:
        return
    memory = measured.memory_bytes
    mib = None if memory is None or not math.isfinite(memory) else round(memory / _MIB)
    named = catalog.by_device(measured.device, mib)
    if named is not None and named != chip.key and chip.key in catalog.accelerators:
        yield f"the pod saw {measured.device}, which is {named}, and spec.accelerator is {chip.key}"
    elif memory is not None and not abs(memory / chip.memory_bytes - 1.0) <= MEMORY:
        yield (
            f"the pod saw {measured.device} with {memory / 1e9:.0f} GB of memory, and {chip.key} has "
            f"{chip.memory_bytes / 1e9:.0f}"
        )


def _above(measured: Measurement, chip: Accelerator) -> Iterator[str]:
    if chip.vendor.made_up:
        return
    source = "the catalog" if chip.declared is None else chip.declared.where
    for dtype, rate in measured.flops.items():
        peak = chip.published_flops.get(dtype)
        if peak is not None and rate.median > ABOVE * peak:
            yield f"{dtype} at {_tera(rate.median)} TFLOP/s is above the {_tera(peak)} that {source} has as its peak"
    bandwidth = chip.published_bandwidth
    if bandwidth is not None and measured.copy is not None and measured.copy.median > ABOVE * bandwidth:
        yield (
            f"a copy at {_giga(measured.copy.median)} GB/s is above the {_giga(bandwidth)} that {source} "
            "has as its peak"
        )


def _contradictory(measured: Measurement, chip: Accelerator) -> Iterator[str]:
    if measured.copy is not None:
        for chips, rate in measured.all_reduce.items():
            if rate.median > measured.copy.median:
                yield (
                    f"{chips} chips add up at {_giga(rate.median)} GB/s, faster than one copies "
                    f"({_giga(measured.copy.median)})"
                )
    if chip.vendor.made_up:
        return
    for name, rate in _rates(measured):
        if rate.best > STEADY * rate.median or rate.best < rate.median:
            yield (
                f"{name} varies: its median is {_share(rate.median, rate.best)} of its best; see to it that nothing "
                "else works on the node, and measure again"
            )
    sheet = chip.published_flops
    shares = {dtype: rate.median / sheet[dtype] for dtype, rate in measured.flops.items() if dtype in sheet}
    if shares and max(shares.values()) > APART * min(shares.values()):
        low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
        yield (
            f"{low} reaches {shares[low]:.0%} of its peak and {high} {shares[high]:.0%}: the kernels of the image do "
            "not fit the chip"
        )


# --- for the API and for people --------------------------------------------------------------------------------------


def calibration(
    measured: Measurement, chip: Accelerator, verdict: tuple[Reason, str], *, node: str, now: float
) -> Calibration:
    """What is stored. Of rates that are none, nothing is."""
    reason, message = verdict
    flops = {
        dtype: _decimal(rate.median / 1e12)
        for dtype, rate in measured.flops.items()
        if rate.valid and dtype in Teraflops.model_fields
    }
    copied = measured.copy
    return Calibration(
        accelerator=chip.key,
        measured_at=write_unix_time(int(now)),  # as on the wire, which the model reads
        reason=reason,
        message=message[:_MESSAGE],
        device=measured.device,
        software=measured.software,
        node=node,
        chips=max(1, min(measured.chips, MAX_CHIPS_PER_NODE)),
        teraflops=Teraflops(**flops) if flops else None,
        memory_gigabytes_per_second=(_decimal(copied.median / 1e9) if copied is not None and copied.valid else None),
        all_reduce=[
            MeasuredLink(chips=chips, gigabytes_per_second=_decimal(rate.median / 1e9))
            for chips, rate in sorted(measured.all_reduce.items())
            if rate.valid and 2 <= chips <= MAX_CHIPS_PER_NODE
        ][:MAX_LINKS],
    )


def _decimal(value: float) -> Decimal:
    return Decimal(format_quantity(value, _DIGITS))


def _message(measured: Measurement, chip: Accelerator) -> str:
    rates = [
        f"{_tera(rate.median)} TFLOP/s in {dtype}{_of(rate.median, chip.published_flops.get(dtype), chip)}"
        for dtype, rate in measured.flops.items()
    ]
    if measured.copy is not None:
        rates.append(
            f"copies at {_giga(measured.copy.median)} GB/s{_of(measured.copy.median, chip.published_bandwidth, chip)}"
        )
    if measured.all_reduce:
        chips = max(measured.all_reduce)
        rates.append(f"all-reduces of {chips} chips at {_giga(measured.all_reduce[chips].median)} GB/s")
    lacking = f"; not measured: {', '.join(sorted(measured.errors))}" if measured.errors else ""
    return f"{measured.device}: {', '.join(rates)}{lacking}"


def _of(rate: float, peak: float | None, chip: Accelerator) -> str:
    return "" if not peak or chip.vendor.made_up else f" ({_share(rate, peak)} of its data sheet)"


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}"


def _tera(rate: float) -> str:
    return format_quantity(rate / 1e12)


def _giga(rate: float) -> str:
    return format_quantity(rate / 1e9)
