"""NVIDIA's dcgm-exporter (https://github.com/NVIDIA/dcgm-exporter).

It fills what the sidecars could not read: on Ampere and older chips, SM, tensor and memory activity can't be had from
within a pod. Profiling counters (PROF) may be off; utilization then stands for busy time, derived, since it counts any
kernel. A part of a chip that MIG made has activity and memory of its own.
"""

from collections.abc import Callable
from typing import Final

from rightpool.profiles.sample import Field, Quality
from rightpool.telemetry.sources.exporter import Counter, Exporter
from rightpool.telemetry.sources.source import Aggregate

# What DCGM gives for a counter that the chip does not have; 64-bit integers from here up, as a float.
BLANK: Final = float(0x7FFFFFFFFFFFFFF0)
_MEBIBYTE: Final = 2.0**20
_UTILIZATION: Final = (("DCGM_FI_DEV_GPU_UTIL", 0.01),)
_BUSY: Final = (("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1.0),)
_SM: Final = (("DCGM_FI_PROF_SM_ACTIVE", 1.0),)
_REASONS: Final = (("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 1.0), ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", 1.0))
# Bits of the reasons: the power cap; heat by software and hardware; these, a hardware slowdown and a power brake.
_CAP, _HEAT, _FAULT = 0x4, 0x60, 0xE8
# Errors that programs cause themselves, as NVIDIA's device plugin has them.
_OF_PROGRAMS: Final = frozenset({13, 31, 43, 45, 68, 109})


def _any_of(bits: int) -> Callable[[float], float | None]:
    """Whether one of the reasons holds clocks down at the moment."""
    return lambda reasons: 1.0 if int(reasons) & bits else 0.0


def _of_chip(xid: float) -> float | None:
    """The number of an error of the chip itself."""
    return None if xid <= 0 or int(xid) in _OF_PROGRAMS else xid


def _if_any(number: float) -> float | None:
    return 1.0 if number > 0 else None


DCGM: Final = Exporter(
    name="dcgm",
    counters=(
        Counter(Field.CHIP_BUSY, _BUSY, Aggregate.AVG),
        Counter(Field.CHIP_BUSY, _UTILIZATION, Aggregate.AVG, Quality.DERIVED),
        Counter(Field.SLOWEST_CHIP_BUSY, _BUSY, Aggregate.MIN),
        Counter(Field.SLOWEST_CHIP_BUSY, _UTILIZATION, Aggregate.MIN, Quality.DERIVED),
        Counter(Field.COMPUTE_ACTIVE, _SM, Aggregate.AVG),
        Counter(Field.MOST_COMPUTE_ACTIVE, _SM, Aggregate.MAX),
        Counter(Field.LEAST_COMPUTE_ACTIVE, _SM, Aggregate.MIN),
        Counter(Field.OCCUPANCY, (("DCGM_FI_PROF_SM_OCCUPANCY", 1.0),), Aggregate.AVG),
        Counter(Field.MATRIX_ACTIVE, (("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1.0),), Aggregate.AVG),
        Counter(Field.FP64_ACTIVE, (("DCGM_FI_PROF_PIPE_FP64_ACTIVE", 1.0),), Aggregate.AVG),
        Counter(Field.FP32_ACTIVE, (("DCGM_FI_PROF_PIPE_FP32_ACTIVE", 1.0),), Aggregate.AVG),
        Counter(Field.FP16_ACTIVE, (("DCGM_FI_PROF_PIPE_FP16_ACTIVE", 1.0),), Aggregate.AVG),
        Counter(Field.MEMORY_BANDWIDTH, (("DCGM_FI_PROF_DRAM_ACTIVE", 1.0),), Aggregate.AVG),
        Counter(Field.MEMORY_USED, (("DCGM_FI_DEV_FB_USED", _MEBIBYTE),), Aggregate.MAX),
        Counter(Field.MEMORY_TOTAL, (("DCGM_FI_DEV_FB_TOTAL", _MEBIBYTE),), Aggregate.MAX),
        Counter(Field.POWER, (("DCGM_FI_DEV_POWER_USAGE", 1.0),), Aggregate.AVG, whole_chip=True),
        Counter(
            Field.POWER_LIMIT,
            (("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", 1.0), ("DCGM_FI_DEV_POWER_MGMT_LIMIT", 1.0)),
            Aggregate.MIN,
            whole_chip=True,
        ),
        Counter(Field.TEMPERATURE, (("DCGM_FI_DEV_GPU_TEMP", 1.0),), Aggregate.MAX),
        Counter(Field.POWER_CAPPED, _REASONS, Aggregate.MAX, made_of=_any_of(_CAP)),
        Counter(Field.THERMAL_THROTTLE, _REASONS, Aggregate.MAX, made_of=_any_of(_HEAT)),
        Counter(Field.THROTTLE, _REASONS, Aggregate.MAX, made_of=_any_of(_FAULT)),
        Counter(Field.XID, (("DCGM_FI_DEV_XID_ERRORS", 1.0),), Aggregate.MAX, made_of=_of_chip),
        Counter(Field.REPAIR, (("DCGM_FI_DEV_ROW_REMAP_FAILURE", 2.0),), Aggregate.MAX, made_of=_if_any),
        Counter(Field.REPAIR, (("DCGM_FI_DEV_ROW_REMAP_PENDING", 1.0),), Aggregate.MAX, made_of=_if_any),
        Counter(Field.UNCORRECTED_ERRORS, (("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 1.0),), Aggregate.MAX),
        # Gauges, in bytes a second already.
        Counter(Field.PEER_SENT, (("DCGM_FI_PROF_NVLINK_TX_BYTES", 1.0),), Aggregate.AVG),
        Counter(Field.PEER_RECEIVED, (("DCGM_FI_PROF_NVLINK_RX_BYTES", 1.0),), Aggregate.AVG),
        Counter(Field.PCIE_SENT, (("DCGM_FI_PROF_PCIE_TX_BYTES", 1.0),), Aggregate.AVG, whole_chip=True),
        Counter(Field.PCIE_RECEIVED, (("DCGM_FI_PROF_PCIE_RX_BYTES", 1.0),), Aggregate.AVG, whole_chip=True),
    ),
    chip="UUID",
    part="GPU_I_ID",
    timed_by="DCGM_FI_DEV_FB_USED",
    blank=BLANK,
)
