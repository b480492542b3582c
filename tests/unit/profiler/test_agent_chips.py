"""NVML by a stand-in with the real module's structures: each field is read, and left out, on its own."""

from types import SimpleNamespace
from typing import Any

import pytest
from rightpool_agent import chip_share  # type: ignore[import-not-found]
from rightpool_agent.chips import Reader, _Chip, find  # type: ignore[import-not-found]

from rightpool import contract
from rightpool_profiler.report import parse
from tests.unit.profiler.test_report import encode

pynvml = pytest.importorskip("pynvml")


class Unsupported(Exception):
    pass


class Nvml:
    """A chip with GPM in which `broken` calls fail."""

    NVML_VOLATILE_ECC = 0
    NVML_MEMORY_ERROR_TYPE_CORRECTED = 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0
    NVML_PAGE_RETIREMENT_CAUSE_COUNT = 2
    nvmlEventTypeXidCriticalError = 8
    NVML_GPM_METRICS_GET_VERSION = pynvml.NVML_GPM_METRICS_GET_VERSION
    c_nvmlGpmMetricsGet_t = pynvml.c_nvmlGpmMetricsGet_t
    NVMLError_NotFound = pynvml.NVMLError_NotFound

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
            "nvmlDeviceGetName": "NVIDIA H200",
            "nvmlDeviceGetEnforcedPowerLimit": 500_000,
            "nvmlDeviceGetMaxClockInfo": 1980,
            "nvmlDeviceGetClockInfo": 990,
            "nvmlDeviceGetTemperature": 61,
            "nvmlDeviceGetRemappedRows": (3, 1, 1, 0),
            "nvmlDeviceGetRetiredPages": [{}, {}],
            "nvmlDeviceGetRetiredPagesPendingStatus": 0,
            "nvmlEventSetCreate": None,
            "nvmlDeviceRegisterEvents": None,
            "nvmlDeviceGetCount": 1,
            "nvmlDeviceGetHandleByIndex": "board",
            "nvmlDeviceGetMigMode": [0, 0],
            "nvmlDeviceGetMaxMigDeviceCount": 7,
            "nvmlDeviceGetMigDeviceHandleByIndex": "part",
            "nvmlDeviceGetGpuInstanceId": 3,
            "nvmlGpmMigSampleGet": None,
            "nvmlDeviceGetCudaComputeCapability": (9, 0),
            "nvmlDeviceGetNumGpuCores": 132 * 128,
            "nvmlDeviceGetProcessUtilization": [],
        }
        self.events = [13, 79, 48]  # one of the program's own, and two of the chip

    def nvmlEventSetWait_v2(self, events: Any, milliseconds: int) -> Any:
        if not self.events or "nvmlEventSetWait_v2" in self._broken:
            raise Unsupported("timeout")
        return SimpleNamespace(eventType=self.nvmlEventTypeXidCriticalError, eventData=self.events.pop())

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
    assert (found["uuid"], found["busy"], found["power"], found["energy"]) == ("GPU-1", 0.5, 350.0, 5.0)
    assert (found["memory_used"], found["memory_total"]) == (3 << 30, 80 << 30)
    assert (found["compute_active"], found["matrix_active"]) == (0.5, 0.5)
    assert "occupancy" not in found and "memory_bandwidth" not in found, "an error code, and no number"
    assert "utilization" not in found, "GPM counts what is active; utilization only whether a kernel was there"
    assert set(found["pipes"]) == {*contract.PIPES} and found["pipes"]["fp32"] == 0.5
    assert (found["clock"], found["power_limit"], found["temperature"]) == (0.5, 500.0, 61.0)
    assert (found["xid"], found["repair"]) == (79, 1)
    assert set(found["errors"]) == {*contract.ERRORS} - {"retired_pages"}
    assert (found["name"], found["sharing"]) == ("NVIDIA-H200", "none")
    assert parse(encode(chips=[found])).chips[0].pipes["fp32"] == 0.5
    assert set(found["throttle"]) == {*contract.REASONS}
    assert found["throttle"]["power_cap"] is True and found["throttle"]["software_thermal"] is False
    assert {tuple(link[:2]) for link in found["links"]} == {
        ("pcie", "tx"),
        ("pcie", "rx"),
        ("nvlink", "rx"),
        ("nvlink", "tx"),
    }


def test_a_chip_before_hopper() -> None:
    found = read("nvmlGpmQueryDeviceSupport")
    assert found["utilization"] == 0.97 and "busy" not in found
    assert not {"compute_active", "links", "pipes"} & set(found)


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        ("nvmlDeviceGetMemoryInfo", "memory_used"),
        ("nvmlDeviceGetPowerUsage", "power"),
        ("nvmlDeviceGetTotalEnergyConsumption", "energy"),
        ("nvmlGpmSampleGet", "compute_active"),
        ("nvmlGpmSampleGet", "pipes"),
        ("nvmlDeviceGetEnforcedPowerLimit", "power_limit"),
        ("nvmlDeviceGetMaxClockInfo", "clock"),
        ("nvmlDeviceGetClockInfo", "clock"),
        ("nvmlDeviceGetTemperature", "temperature"),
        ("nvmlEventSetCreate", "xid"),
        ("nvmlDeviceRegisterEvents", "xid"),
        ("nvmlDeviceGetName", "name"),
    ],
)
def test_an_unsupported_call_affects_one_field(broken: str, field: str) -> None:
    found = read(broken)
    assert field not in found
    assert len(found) > 4


def test_pages_are_retired_before_ampere() -> None:
    found = read("nvmlDeviceGetRemappedRows")
    assert found["errors"]["retired_pages"] == 4 and found["repair"] == 0
    assert "repair" not in read("nvmlDeviceGetRemappedRows", "nvmlDeviceGetRetiredPages")
    assert read("nvmlDeviceGetTotalEccErrors")["errors"].keys() == {
        "remapped_rows_corrected",
        "remapped_rows_uncorrected",
    }


def test_a_part_of_a_chip_has_no_power_of_its_own() -> None:
    nvml = Nvml()
    nvml._answers["nvmlDeviceGetMigMode"] = [1, 1]
    [*parts] = find(nvml)
    assert len(parts) == 7
    parts[0].read()
    found = parts[0].read()
    assert found["sharing"] == "mig" and found["compute_active"] == 0.5
    assert not {"power", "energy", "power_limit", "utilization"} & set(found)


@pytest.mark.parametrize(("mine", "active"), [(66, 1.0), (99, 0.5 * 132 / 99), (132, 0.5), (0, None)])
def test_a_client_of_mps_has_the_activity_of_its_own_multiprocessors(
    monkeypatch: pytest.MonkeyPatch, mine: int, active: float | None
) -> None:
    """The counters are the chip's: half of it active is all of half of it."""
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
    monkeypatch.setattr(chip_share, "_multiprocessors", lambda ordinal: mine)
    found = read()
    assert found["sharing"] == "mps"
    assert found.get("compute_active") == found.get("matrix_active") == active
    assert found.get("pipes", {}).get("fp32") == active
    assert found["busy"] == 0.5 and found["power"] == 350.0, "of the whole chip"


def test_without_cuda_a_share_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
    monkeypatch.setattr(chip_share.ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    assert "compute_active" not in read()


def test_chips_have_the_ranks_that_a_launcher_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LOCAL_WORLD_SIZE", "2"), ("RANK", "4"), ("LOCAL_RANK", "0")):
        monkeypatch.setenv(name, value)
    reader = Reader()
    reader._chips = find(Nvml()) * 2
    assert [chip["rank"] for chip in reader.read("cuda")["chips"]] == [4, 5]
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    assert "rank" not in reader.read("cuda")["chips"][0], "not one process a chip"


def test_an_old_driver_has_the_old_name_of_the_reasons() -> None:
    assert read("nvmlDeviceGetCurrentClocksEventReasons")["throttle"]["software_thermal"] is True


def test_no_gpu_no_chips(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Reader().read("cpu") == {}
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert Reader().read("cuda") == {}, "the first process of the pod reads for all"
