"""Reads NVIDIA counters through NVML from inside the program's container, which sees exactly its own chips.

Hopper and newer have GPM counters (how much of the chip works); older ones only tell whether anything works at all.
Every call may be unsupported on its own, so each field is read, and left out, on its own. One reading takes about
4 ms of CPU (tests/gpu/overhead.py); `nvmlDeviceGetPcieThroughput` blocks for 20 ms and is not used.
"""

from __future__ import annotations

import os
import time
from typing import Any

_MAX_CHIPS = 32
_GPM = {  # metric id → field, in percent
    2: "compute_active",
    3: "occupancy",
    5: "matrix_active",
    10: "memory_bandwidth",
}
_GPM_BYTES = {  # metric id → (link, direction), in MiB/s
    20: ("pcie", "tx"),
    21: ("pcie", "rx"),
    60: ("nvlink", "rx"),
    61: ("nvlink", "tx"),
}
_MIB = float(1 << 20)
_REASONS = {  # bits of the clocks' event reasons
    0x4: "power_cap",
    0x8: "hardware_slowdown",
    0x20: "software_thermal",
    0x40: "hardware_thermal",
    0x80: "power_brake",
}


class Reader:
    """All chips of this container, read once per message by the first local process alone."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._chips: list[_Chip] | None = None
        self._mine = os.environ.get("LOCAL_RANK", "0") in ("", "0")

    def read(self, platform: str | None) -> dict[str, Any]:
        """`chips`: one dictionary of fields per chip; empty where there is no NVIDIA GPU."""
        if not self._mine or platform not in ("gpu", "cuda"):
            return {}
        if self._chips is None:
            self._chips = self._open()
        found = [chip.read() for chip in self._chips]
        return {"chips": found} if found else {}

    def _open(self) -> list[_Chip]:
        try:
            import importlib

            pynvml = importlib.import_module(".pynvml", __package__)

            pynvml.nvmlInit()
            handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())][:_MAX_CHIPS]
            return [_Chip(pynvml, handle) for handle in handles]
        except Exception:
            return []


class _Chip:
    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        uuid = nvml.nvmlDeviceGetUUID(handle)
        self._uuid = uuid.decode() if isinstance(uuid, bytes) else str(uuid)
        self._samples: list[Any] = []
        self._sampled_at: list[float] = []
        self._bytes: dict[int, float] = {}
        try:
            if nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
                self._samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
        except Exception:
            pass  # before Hopper, or an old driver

    def read(self) -> dict[str, Any]:
        nvml, handle = self._nvml, self._handle
        found: dict[str, Any] = {"uuid": self._uuid}

        def ask(call: Any, *arguments: Any) -> Any:
            try:
                return call(*arguments)
            except Exception:
                return None

        memory = ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        if memory is not None:
            found["memory_used"], found["memory_total"] = float(memory.used), float(memory.total)
        use = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
        if use is not None:
            found["busy"] = use.gpu / 100.0
        power = ask(nvml.nvmlDeviceGetPowerUsage, handle)
        if power is not None:
            found["power"] = power / 1000.0
        energy = ask(nvml.nvmlDeviceGetTotalEnergyConsumption, handle)
        if energy is not None:
            found["energy"] = energy / 1000.0
        reasons = ask(getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None), handle)
        if reasons is None:
            reasons = ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        if reasons is not None:
            found["throttle"] = {name: bool(reasons & bit) for bit, name in _REASONS.items()}
        corrected, uncorrected = (
            ask(nvml.nvmlDeviceGetTotalEccErrors, handle, kind, nvml.NVML_VOLATILE_ECC)
            for kind in (nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)
        )
        errors = {"ecc_corrected": corrected, "ecc_uncorrected": uncorrected}
        found["errors"] = {kind: float(count) for kind, count in errors.items() if count is not None}
        try:
            found.update(self._activity())
        except Exception:
            self._samples = []  # not worth asking again
        return found

    def _activity(self) -> dict[str, Any]:
        """GPM: the average between this sample and the last one."""
        if not self._samples:
            return {}
        nvml = self._nvml
        self._samples.reverse()
        nvml.nvmlGpmSampleGet(self._handle, self._samples[1])
        self._sampled_at.append(time.monotonic())
        if len(self._sampled_at) < 2:
            return {}
        elapsed = self._sampled_at[-1] - self._sampled_at.pop(0)
        wanted = [*_GPM, *_GPM_BYTES]
        query = nvml.c_nvmlGpmMetricsGet_t()
        query.version = nvml.NVML_GPM_METRICS_GET_VERSION
        query.numMetrics = len(wanted)
        query.sample1, query.sample2 = self._samples
        for index, metric in enumerate(wanted):
            query.metrics[index].metricId = metric
        nvml.nvmlGpmMetricsGet(query)
        found: dict[str, Any] = {}
        for index, metric in enumerate(wanted):
            answer = query.metrics[index]
            if answer.nvmlReturn != 0 or answer.value != answer.value:
                continue
            if metric in _GPM:
                found[_GPM[metric]] = answer.value / 100.0
            else:
                self._bytes[metric] = self._bytes.get(metric, 0.0) + answer.value * _MIB * elapsed
        found["links"] = [[*_GPM_BYTES[metric], total] for metric, total in self._bytes.items()]
        return found
