"""Reads NVIDIA counters through NVML from inside the program's container, which sees exactly its own chips.

Hopper and newer have GPM counters (activity of parts of the chip); older ones only show whether any kernel runs.
Each call may be unsupported, so each field is read or omitted separately. One reading takes about
4 to 6 ms of CPU (tests/gpu/overhead.py); `nvmlDeviceGetPcieThroughput` blocks for 20 ms and is not used.

A part of a chip made by MIG has memory and activity of its own; power, clocks and health are the whole chip's.
Of a chip that MPS divides, activity of multiprocessors is in relation to those that the process may use; the use of
memory bandwidth is in relation to the whole chip's.
"""

from __future__ import annotations

import os
import time
from typing import Any

from . import chip_health, chip_others, chip_share

_MAX_CHIPS = 32
_GPM = {  # metric id → field, in percent
    1: "busy",
    2: "compute_active",
    3: "occupancy",
    5: "matrix_active",
    10: "memory_bandwidth",
}
_GPM_PIPES = {  # metric id → pipe, in percent
    4: "integer",
    6: "tensor_fp64",
    7: "tensor_half",
    9: "tensor_integer",
    11: "fp64",
    12: "fp32",
    13: "fp16",
}
_GPM_BYTES = {  # metric id → (link, direction), in MiB/s
    20: ("pcie", "tx"),
    21: ("pcie", "rx"),
    60: ("nvlink", "rx"),
    61: ("nvlink", "tx"),
}
_MIB = float(1 << 20)
_REASONS = {  # bits of the clocks' event reasons
    0x2: "application_clocks",
    0x4: "power_cap",
    0x8: "hardware_slowdown",
    0x10: "sync_boost",
    0x20: "software_thermal",
    0x40: "hardware_thermal",
    0x80: "power_brake",
}
_OF_MULTIPROCESSORS = ("compute_active", "occupancy", "matrix_active")


class Reader:
    """All chips of this container, read once per message by the first local process alone."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._chips: list[_Chip] | None = None
        self._mine = os.environ.get("LOCAL_RANK", "0") in ("", "0")

    def read(self, platform: str | None) -> dict[str, Any]:
        """`chips`: one dictionary of fields per chip; empty without NVIDIA GPUs."""
        if not self._mine or platform not in ("gpu", "cuda"):
            return {}
        if self._chips is None:
            self._chips = self._open()
        found = [chip.read() for chip in self._chips]
        for rank, chip in zip(_ranks(len(found)), found):
            chip["rank"] = rank
        return {"chips": found} if found else {}

    def _open(self) -> list[_Chip]:
        try:
            import importlib

            pynvml = importlib.import_module(".pynvml", __package__)

            pynvml.nvmlInit()
            return find(pynvml)
        except Exception:
            return []


def _ranks(chips: int) -> list[int]:
    """The rank that uses each chip, where a launcher made one process for each; else nothing is known."""
    try:
        local = int(os.environ["LOCAL_WORLD_SIZE"])
        first = int(os.environ["RANK"]) - int(os.environ["LOCAL_RANK"])
    except (KeyError, ValueError):
        return []
    return list(range(first, first + chips)) if local == chips else []


def find(nvml: Any) -> list[_Chip]:
    """The chips of this container; of one that MIG divides, its parts that are visible here."""
    found: list[_Chip] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        board = nvml.nvmlDeviceGetHandleByIndex(index)
        parts = _parts(nvml, board)
        found += [_Chip(nvml, part, board) for part in parts] if parts else [_Chip(nvml, board, ordinal=index)]
    return found[:_MAX_CHIPS]


def _parts(nvml: Any, board: Any) -> list[Any]:
    try:
        if nvml.nvmlDeviceGetMigMode(board)[0] != 1:
            return []
        count = nvml.nvmlDeviceGetMaxMigDeviceCount(board)
    except Exception:
        return []
    found = []
    for index in range(count):
        try:
            found.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(board, index))
        except Exception:
            pass
    return found


def _ask(call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except Exception:
        return None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


class _Chip:
    """`handle` is what the program has; `board` the whole chip, where MIG divides it; `ordinal` its CUDA number."""

    def __init__(self, nvml: Any, handle: Any, board: Any = None, ordinal: int = 0) -> None:
        self._nvml = nvml
        self._handle = handle
        self._part = board is not None
        self._board = board if self._part else handle
        self._uuid = _text(nvml.nvmlDeviceGetUUID(handle))
        self._ordinal = ordinal
        self._divided = not self._part and chip_share.is_divided()
        self._share: float | None = None
        self._facts: dict[str, Any] = {"sharing": "mig" if self._part else "mps" if self._divided else "none"}
        try:
            self._facts["name"] = _text(nvml.nvmlDeviceGetName(handle)).replace(" ", "-")
        except Exception:
            pass
        self._health = chip_health.Health(nvml, self._board)
        self._others = None if self._part or self._divided else chip_others.Others(nvml, handle)
        self._most_clock: float | None = None
        self._samples: list[Any] = []
        self._sampled_at: list[float] = []
        self._bytes: dict[int, float] = {}
        self._has_gpm = False
        try:
            if nvml.nvmlGpmQueryDeviceSupport(self._board).isSupportedDevice:
                self._instance = nvml.nvmlDeviceGetGpuInstanceId(handle) if self._part else None
                self._samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
                self._has_gpm = True
        except Exception:
            pass  # before Hopper, or an old driver

    def read(self) -> dict[str, Any]:
        nvml, handle = self._nvml, self._handle
        found: dict[str, Any] = {"uuid": self._uuid, **self._facts}
        memory = _ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        if memory is not None:
            found["memory_used"], found["memory_total"] = float(memory.used), float(memory.total)
        if not self._part:  # of a part it would be all neighbours'
            found.update(self._power())
        found.update(self._clocks())
        found.update(self._health.read())
        others = None if self._others is None else self._others.read()
        if others is not None:
            found["others"] = others
        try:
            found.update(self._activity())
        except Exception:
            self._samples, self._has_gpm = [], False  # unsupported: do not try again
        if not self._has_gpm and not self._part:
            use = _ask(nvml.nvmlDeviceGetUtilizationRates, handle)
            if use is not None:
                found["utilization"] = use.gpu / 100.0
        return found

    def _power(self) -> dict[str, float]:
        nvml, found = self._nvml, {}
        for name, call in (
            ("power", nvml.nvmlDeviceGetPowerUsage),
            ("energy", nvml.nvmlDeviceGetTotalEnergyConsumption),
            ("power_limit", nvml.nvmlDeviceGetEnforcedPowerLimit),
        ):
            value = _ask(call, self._handle)
            if value is not None and (value or name != "power_limit"):  # a limit of nothing is none
                found[name] = value / 1000.0
        return found

    def _clocks(self) -> dict[str, Any]:
        """With what holds them down."""
        nvml, board = self._nvml, self._board
        found: dict[str, Any] = {}
        if self._most_clock is None:
            self._most_clock = _ask(nvml.nvmlDeviceGetMaxClockInfo, board, nvml.NVML_CLOCK_SM)
        clock = _ask(nvml.nvmlDeviceGetClockInfo, board, nvml.NVML_CLOCK_SM)
        if clock is not None and self._most_clock:
            found["clock"] = min(1.0, clock / self._most_clock)
        heat = _ask(nvml.nvmlDeviceGetTemperature, board, nvml.NVML_TEMPERATURE_GPU)
        if heat is not None:
            found["temperature"] = float(heat)
        reasons = _ask(getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None), board)
        if reasons is None:
            reasons = _ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, board)
        if reasons is not None:
            found["throttle"] = {name: bool(reasons & bit) for bit, name in _REASONS.items()}
        return found

    def _activity(self) -> dict[str, Any]:
        """GPM: the average between this sample and the last one."""
        if not self._samples:
            return {}
        nvml = self._nvml
        self._samples.reverse()
        if self._instance is None:
            nvml.nvmlGpmSampleGet(self._handle, self._samples[1])
        else:
            nvml.nvmlGpmMigSampleGet(self._board, self._instance, self._samples[1])
        self._sampled_at.append(time.monotonic())
        if len(self._sampled_at) < 2:
            return {}
        elapsed = self._sampled_at[-1] - self._sampled_at.pop(0)
        wanted = [*_GPM, *_GPM_PIPES, *_GPM_BYTES]
        query = nvml.c_nvmlGpmMetricsGet_t()
        query.version = nvml.NVML_GPM_METRICS_GET_VERSION
        query.numMetrics = len(wanted)
        query.sample1, query.sample2 = self._samples
        for index, metric in enumerate(wanted):
            query.metrics[index].metricId = metric
        nvml.nvmlGpmMetricsGet(query)
        found: dict[str, Any] = {}
        pipes: dict[str, float] = {}
        for index, metric in enumerate(wanted):
            answer = query.metrics[index]
            if answer.nvmlReturn != 0 or answer.value != answer.value:
                continue
            if metric in _GPM:
                found[_GPM[metric]] = answer.value / 100.0
            elif metric in _GPM_PIPES:
                pipes[_GPM_PIPES[metric]] = answer.value / 100.0
            else:
                self._bytes[metric] = self._bytes.get(metric, 0.0) + answer.value * _MIB * elapsed
        if pipes:
            found["pipes"] = pipes
        found["links"] = [[*_GPM_BYTES[metric], total] for metric, total in self._bytes.items()]
        return self._of_share(found) if self._divided else found

    def _of_share(self, found: dict[str, Any]) -> dict[str, Any]:
        """Without the activity of multiprocessors where the process's share of them is not known."""
        if self._share is None:
            self._share = chip_share.share(self._nvml, self._handle, self._ordinal)
        share, pipes = self._share, found.pop("pipes", {})
        active = {name: found.pop(name) for name in _OF_MULTIPROCESSORS if name in found}
        if share is None:
            return found
        found.update({name: min(1.0, value / share) for name, value in active.items()})
        if pipes:
            found["pipes"] = {name: min(1.0, value / share) for name, value in pipes.items()}
        return found
