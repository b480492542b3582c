"""How much of a chip this process may use, where CUDA's Multi-Process Service (MPS) divides it.

MPS limits a client to some of the chip's multiprocessors; NVML's counters know the whole chip alone. What they say is
put in relation to those multiprocessors, as the counters of a MIG slice are to the slice.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

_VARIABLES = ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT")
_MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: for a client of MPS, those that it may use
_CORES = 128  # of a multiprocessor, from Hopper (9.0) on, which is also where GPM counters begin
_HOPPER = 9


def is_divided() -> bool:
    """Whether this process is a client of MPS."""
    return any(os.environ.get(name) for name in _VARIABLES)


def share(nvml: Any, handle: Any, ordinal: int) -> float | None:
    """The share of the chip's multiprocessors that this process may use, above 0 to 1; None where it can't be known.

    ordinal: the chip's number for this process. CUDA must have been started by the program: it is not started here.
    """
    try:
        if nvml.nvmlDeviceGetCudaComputeCapability(handle)[0] < _HOPPER:
            return None
        all_of_them = nvml.nvmlDeviceGetNumGpuCores(handle) // _CORES
        mine = _multiprocessors(ordinal)
        return mine / all_of_them if 0 < mine <= all_of_them else None
    except Exception:
        return None


def _multiprocessors(ordinal: int) -> int:
    found = ctypes.c_int(0)
    failed = ctypes.CDLL("libcuda.so.1").cuDeviceGetAttribute(ctypes.byref(found), _MULTIPROCESSORS, ordinal)
    return 0 if failed else found.value
