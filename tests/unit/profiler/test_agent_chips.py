"""NVML by a stand-in with the real module's structures: each field is read, and left out, on its own."""

from types import SimpleNamespace
from typing import Any

import pytest
from rightpool_agent.chips import Reader, _Chip  # type: ignore[import-not-found]

pynvml = pytest.importorskip("pynvml")


class Unsupported(Exception):
    pass


class Nvml:
    """A chip with GPM in which `broken` calls fail."""

    NVML_VOLATILE_ECC = 0
    NVML_MEMORY_ERROR_TYPE_CORRECTED = 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_GPM_METRICS_GET_VERSION = pynvml.NVML_GPM_METRICS_GET_VERSION
    c_nvmlGpmMetricsGet_t = pynvml.c_nvmlGpmMetricsGet_t

    def __init__(self, *broken: str) -> None:
        self._broken = broken
        self._answers: dict[str, Any] = {
            "nvmlDeviceGetUUID": "GPU-1",
            "nvmlGpmQueryDeviceSupport": SimpleNamespace(isSupportedDevice=1),
            "nvmlGpmSampleAlloc": None,
            "nvmlGpmSampleGet": None,
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=3 << 30, total=80 << 30),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=97, memory=10),
            "nvmlDeviceGetPowerUsage": 350_000,
            "nvmlDeviceGetTotalEnergyConsumption": 5_000,
            "nvmlDeviceGetCurrentClocksEventReasons": 0x4,
            "nvmlDeviceGetCurrentClocksThrottleReasons": 0x20,
            "nvmlDeviceGetTotalEccErrors": 2,
        }

    def nvmlGpmMetricsGet(self, query: Any) -> None:
        for metric in query.metrics[: query.numMetrics]:
            metric.nvmlReturn = 3 if metric.metricId == 3 else 0  # no occupancy
            metric.value = float("nan") if metric.metricId == 10 else 50.0

    def __getattr__(self, name: str) -> Any:
        def call(*_: Any) -> Any:
            if name in self._broken:
                raise Unsupported(name)
            return self._answers[name]

        return call


def read(*broken: str) -> dict[str, Any]:
    chip = _Chip(Nvml(*broken), object())
    chip.read()
    found: dict[str, Any] = chip.read()
    return found


def test_everything() -> None:
    found = read()
    assert (found["uuid"], found["busy"], found["power"], found["energy"]) == ("GPU-1", 0.97, 350.0, 5.0)
    assert (found["memory_used"], found["memory_total"]) == (3 << 30, 80 << 30)
    assert (found["compute_active"], found["matrix_active"]) == (0.5, 0.5)
    assert "occupancy" not in found and "memory_bandwidth" not in found, "an error code, and no number"
    assert found["throttle"]["power_cap"] is True and found["throttle"]["software_thermal"] is False
    assert {tuple(link[:2]) for link in found["links"]} == {
        ("pcie", "tx"),
        ("pcie", "rx"),
        ("nvlink", "rx"),
        ("nvlink", "tx"),
    }


def test_a_chip_before_hopper() -> None:
    found = read("nvmlGpmQueryDeviceSupport")
    assert found["busy"] == 0.97
    assert "compute_active" not in found and "links" not in found


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        ("nvmlDeviceGetMemoryInfo", "memory_used"),
        ("nvmlDeviceGetUtilizationRates", "busy"),
        ("nvmlDeviceGetPowerUsage", "power"),
        ("nvmlDeviceGetTotalEnergyConsumption", "energy"),
        ("nvmlGpmSampleGet", "compute_active"),
    ],
)
def test_one_unsupported_call_costs_one_field(broken: str, field: str) -> None:
    found = read(broken)
    assert field not in found
    assert len(found) > 4


def test_an_old_driver_has_the_old_name_of_the_reasons() -> None:
    assert read("nvmlDeviceGetCurrentClocksEventReasons")["throttle"]["software_thermal"] is True


def test_no_gpu_no_chips(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Reader().read("cpu") == {}
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert Reader().read("cuda") == {}, "the first process of the pod reads for all"
