"""Errors of an NVIDIA chip: ECC, rows and pages of memory that were replaced, and XID events.

Errors that a program causes itself (XIDs of bad memory accesses and the like) say nothing of the chip and are left out,
as NVIDIA's device plugin does. XID events are seen from when the agent began.
"""

from __future__ import annotations

from typing import Any

_OF_PROGRAMS = frozenset({13, 31, 43, 45, 68, 109})
_EVENTS_AT_ONCE = 16


class Health:
    """Each count is read, or left out, on its own."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._events: Any = None
        self._xid: int | None = None
        try:
            events = nvml.nvmlEventSetCreate()
            nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
            self._events, self._xid = events, 0
        except Exception:
            pass

    def read(self) -> dict[str, Any]:
        """`errors` by kind, `repair` (0 none, 1 waits for a reset, 2 failed), `xid` (0: no critical one so far)."""
        nvml, handle = self._nvml, self._handle
        found: dict[str, Any] = {}
        errors: dict[str, float] = {}
        for kind, memory in (
            ("ecc_corrected", nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
            ("ecc_uncorrected", nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
        ):
            try:
                errors[kind] = float(nvml.nvmlDeviceGetTotalEccErrors(handle, memory, nvml.NVML_VOLATILE_ECC))
            except Exception:
                pass
        try:
            corrected, uncorrected, pending, failed = nvml.nvmlDeviceGetRemappedRows(handle)
            errors["remapped_rows_corrected"] = float(corrected)
            errors["remapped_rows_uncorrected"] = float(uncorrected)
            found["repair"] = 2 if failed else 1 if pending else 0
        except Exception:
            self._retired(found, errors)  # before Ampere
        found["errors"] = errors
        if self._xid is not None:
            self._take_events()
            found["xid"] = self._xid
        return found

    def _retired(self, found: dict[str, Any], errors: dict[str, float]) -> None:
        nvml, handle = self._nvml, self._handle
        try:
            causes = range(nvml.NVML_PAGE_RETIREMENT_CAUSE_COUNT)
            errors["retired_pages"] = float(sum(len(nvml.nvmlDeviceGetRetiredPages(handle, one)) for one in causes))
            found["repair"] = 1 if nvml.nvmlDeviceGetRetiredPagesPendingStatus(handle) else 0
        except Exception:
            pass

    def _take_events(self) -> None:
        for _ in range(_EVENTS_AT_ONCE):
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._events, 0)
            except Exception:
                return  # a timeout: there is none
            if event.eventType == self._nvml.nvmlEventTypeXidCriticalError and event.eventData not in _OF_PROGRAMS:
                self._xid = max(self._xid or 0, int(event.eventData))
