"""Reads what a sidecar answers to a request for a trace. The pod is the tenant's: nothing is believed unchecked."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any, Final

from pydantic_core import from_json

from rightpool import contract
from rightpool.api.trace import (
    MAX_COLLECTIVES,
    MAX_DEVICES,
    MAX_OPERATIONS,
    MAX_STEP_ENDS,
    MAX_TIMELINE,
    TraceDevicePeak,
    TraceMemory,
    TraceOperation,
    TracePart,
    TracePhase,
    TraceReason,
    TraceState,
    TraceSummary,
)
from rightpool.api.units import MAX_COUNT
from rightpool.planning.jobs.trace_answer import PodTrace, RankTrace
from rightpool.planning.moves.trace import limit_without
from rightpool.pod_client import RequestFailed

_STATES: Final = {
    contract.TRACE_CAPTURED: TraceState.CAPTURED,
    contract.TRACE_FAILED: TraceState.FAILED,
    "waiting": TraceState.WAITING,
    "capturing": TraceState.CAPTURING,
    "reading": TraceState.CAPTURING,
}
_PARTS: Final = {
    contract.PART_COMPUTE: "Compute",
    contract.PART_OVERLAPPED_COMMUNICATION: "OverlappedCommunication",
    contract.PART_EXPOSED_COMMUNICATION: "ExposedCommunication",
    contract.PART_MEMCPY: "Memcpy",
    contract.PART_INPUT: "Input",
    contract.PART_LAUNCH: "Launch",
    contract.PART_IDLE: "Idle",
}
_PHASES: Final = {phase: TracePhase(phase.capitalize()) for phase in contract.TRACE_PHASES}
_ON: Final = {"device": "Device", "host": "Host"}
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_LONGEST_MESSAGE: Final = 300
_LONGEST_NAME: Final = 80
_FASTEST: Final = 1e18  # FLOPs or bytes a second, of one process
_SLOWEST: Final = 1e6  # times
_MOST_BYTES: Final = 2.0**50  # of memory, likewise
_MOST_RANKS: Final = 256  # processes of a pod
_ROUNDING: Final = 1e-6


def read_answer(text: str) -> PodTrace:
    """The answer of one sidecar. Raises RequestFailed."""
    try:
        return _answer(from_json(text))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise RequestFailed(f"the answer can't be read as one about a trace: {error}"[:_LONGEST_MESSAGE]) from None


def _answer(body: Any) -> PodTrace:
    state = _STATES[body["state"]]
    failed = state is TraceState.FAILED
    ranks = tuple(_rank(one) for one in body["ranks"][:_MOST_RANKS])
    asked = None if body["rank"] == contract.TRACE_ALL else _count(body["rank"])
    captured = [one.rank for one in ranks if one.summary is not None]
    if state is TraceState.CAPTURED and (not captured or asked not in (None, *captured)):
        raise ValueError("no rank was captured that was asked for")
    return PodTrace(
        _text(body["id"], 64),
        asked,
        state,
        _reason(body["reason"]) if failed else None,
        _text(body["message"], _LONGEST_MESSAGE) if failed else "",
        None if body["world"] is None else _count(body["world"]),
        ranks,
    )


def _rank(body: Any) -> RankTrace:
    rank, state = _count(body["rank"]), _STATES[body["state"]]
    if state is not TraceState.CAPTURED:
        return RankTrace(rank, _reason(body["reason"]), _text(body["message"], _LONGEST_MESSAGE))
    digest = body["sha256"]
    if not _DIGEST.fullmatch(digest):
        raise ValueError("sha256 is no digest")
    summary = _summary(body["summary"])
    return RankTrace(rank, size_bytes=_count(body["bytes"]), sha256=digest, summary=summary)


def _reason(word: Any) -> TraceReason:
    return TraceReason(word) if word in contract.TRACE_REASONS else TraceReason.CAPTURE_FAILED


def _summary(body: Any) -> TraceSummary:
    parts = tuple(_part(name, _share(body["parts"][name])) for name in _PARTS if name in body["parts"])
    if abs(sum(part.share for part in parts) - 1.0) > 0.01:
        raise ValueError("the parts are not the whole")
    return TraceSummary(
        on=_ON[body["on"]],
        seconds=_number(body["seconds"], 1e6),
        steps=None if body["steps"] is None else _count(body["steps"]),
        parts=parts,
        collectives=tuple(_operation(one, exposed=True) for one in body["collectives"][:MAX_COLLECTIVES]),
        operations=tuple(_operation(one, exposed=False) for one in body["operations"][:MAX_OPERATIONS]),
        # A sidecar of a version before tells none of these.
        kinds=tuple(_kind(one) for one in body.get("kinds", ())[: len(contract.TRACE_KINDS)]),
        memory=None if body.get("memory") is None else _memory(body["memory"]),
        slowdown=None if body.get("slowdown") is None else _number(body["slowdown"], _SLOWEST),
        cost=None if body.get("cost") is None else _number(body["cost"], 1e6),
    )


def _part(name: str, share: float) -> TracePart:
    overlapped = name == contract.PART_OVERLAPPED_COMMUNICATION
    return TracePart(_PARTS[name], share, None if overlapped else limit_without(share))


def _operation(body: Any, *, exposed: bool) -> TraceOperation:
    name, count, share = _text(body["name"], _LONGEST_NAME), _count(body["count"]), _number(body["share"], 1e6)
    rates = (None if body.get(cost) is None else _number(body[cost], _FASTEST) for cost in ("flops", "bytes"))
    return TraceOperation(name, count, share, _share(body["exposed"]) if exposed else None, *rates)


def _memory(body: Any) -> TraceMemory:
    timeline = tuple(_bytes(one) for one in body["timeline"][:MAX_TIMELINE])
    return TraceMemory(
        _bytes(body["peak"]),
        _share(body["at"]),
        timeline,
        # A sidecar of a version before tells none of these.
        device=None if body.get("device") is None else _text(body["device"], _LONGEST_NAME),
        reserved_bytes=_known_bytes(body, "reserved"),
        capacity_bytes=_known_bytes(body, "capacity"),
        at_step=None if body.get("step") is None else _share(body["step"]),
        phase=None if body.get("phase") is None else _PHASES[body["phase"]],
        step_ends=tuple(_bytes(one) for one in body.get("ends", ())[:MAX_STEP_ENDS]),
        others=tuple(_device(one) for one in body.get("others", ())[:MAX_DEVICES]),
    )


def _device(body: Any) -> TraceDevicePeak:
    return TraceDevicePeak(_text(body["device"], _LONGEST_NAME), _bytes(body["peak"]), _known_bytes(body, "reserved"))


def _known_bytes(body: Any, name: str) -> int | None:
    return None if body.get(name) is None else _bytes(body[name])


def _bytes(value: Any) -> int:
    return int(_number(value, _MOST_BYTES))


def _kind(body: Any) -> TraceOperation:
    found = _operation(body, exposed=False)
    if found.name not in contract.TRACE_KINDS:
        raise ValueError(f"{found.name!r:.40} is no kind of operation")
    return replace(found, name=found.name.capitalize())


def _text(value: Any, longest: int) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} is no text")
    return "".join(letter for letter in value[:longest] if letter.isprintable())


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MAX_COUNT:
        raise ValueError(f"{value!r:.40} is no count")
    return value


def _number(value: Any, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r:.40} is no number")
    if not 0 <= value <= most:
        raise ValueError(f"{value!r:.40} is out of range")
    return float(value)


def _share(value: Any) -> float:
    return min(1.0, _number(value, 1.0 + _ROUNDING))
