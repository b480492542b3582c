"""What one process says about itself: the agent's datagram, checked.

Anyone in the user's container can write to the socket, so nothing is believed by its looks: size, type, finiteness,
range and length are checked here, and everything after works on a `Report`. Whether counters run backwards is for the
state to say, which knows the earlier reports.
"""

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Final

MAX_BYTES: Final = 32 * 1024
MAX_CHIPS: Final = 32

# Upper bounds in seconds of rightpool_step_seconds; +Inf follows.
BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0)

FRAMEWORKS: Final = ("torch", "jax")
THROTTLE_REASONS: Final = ("power_cap", "hardware_slowdown", "software_thermal", "hardware_thermal", "power_brake")
ERROR_KINDS: Final = ("ecc_corrected", "ecc_uncorrected")
LINKS: Final = frozenset({("pcie", "tx"), ("pcie", "rx"), ("nvlink", "tx"), ("nvlink", "rx")})

_MAX_NUMBER: Final = 1e15
_MAX_STATE: Final = 120
_MAX_RATIO: Final = 1.1  # a little over 1 comes of clocks that differ, more is no share of anything
_NAME: Final = re.compile(r"[A-Za-z0-9._:-]{1,80}")


class Malformed(ValueError):
    """A datagram that is not what an agent sends. The message says why."""


@dataclass(frozen=True, slots=True)
class Chip:
    """One reading of one chip. Ratios 0–1, bytes, watts, joules; None where the chip cannot say."""

    uuid: str
    ratios: dict[str, float] = field(default_factory=dict)
    memory_used: float | None = None
    memory_total: float | None = None
    power: float | None = None
    energy: float | None = None
    throttle: dict[str, bool] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    links: dict[tuple[str, str], float] = field(default_factory=dict)  # bytes since the agent began


@dataclass(frozen=True, slots=True)
class Report:
    """One process' counters since its start."""

    pid: int
    start: int  # clock ticks from boot: with the pid, the identity of the process
    rank: int
    at: float  # the process' monotonic clock, seconds
    framework: str
    steps: int
    seconds: float  # the sum of all step times that `counts` counts
    counts: tuple[int, ...]
    cpu: float  # CPU seconds
    samples: int | None = None
    input_seconds: float | None = None
    memory: float | None = None
    memory_limit: float | None = None
    platform: str | None = None
    saved: float | None = None  # Unix time of the newest complete checkpoint
    save_seconds: float | None = None
    command: tuple[str, str] | None = None  # (id, state) of the last checkpoint request served
    chips: tuple[Chip, ...] = ()

    @property
    def key(self) -> tuple[int, int]:
        return self.pid, self.start


RATIOS: Final = ("busy", "compute_active", "matrix_active", "memory_bandwidth", "occupancy")


def parse(data: bytes) -> Report:
    """Check one datagram; raises Malformed."""
    if len(data) > MAX_BYTES:
        raise Malformed(f"longer than {MAX_BYTES} bytes")
    try:
        message = json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {error}") from error
    if not isinstance(message, dict):
        raise Malformed("not an object")
    counts = message.get("counts")
    if not isinstance(counts, list) or len(counts) != len(BUCKETS) + 1:
        raise Malformed("counts: wrong length")
    framework = message.get("framework")
    if framework not in FRAMEWORKS:
        raise Malformed("framework: unknown")
    chips = message.get("chips", [])
    if not isinstance(chips, list) or len(chips) > MAX_CHIPS:
        raise Malformed("chips: not a list of at most 32")
    return Report(
        pid=_whole(message, "pid"),
        start=_whole(message, "start"),
        rank=_whole(message, "rank"),
        at=_number(message, "at"),
        framework=framework,
        steps=_whole(message, "steps"),
        seconds=_number(message, "seconds"),
        counts=tuple(_whole({"counts": count}, "counts") for count in counts),
        cpu=_number(message, "cpu"),
        samples=_optional_whole(message, "samples"),
        input_seconds=_optional(message, "input_seconds"),
        memory=_optional(message, "memory"),
        memory_limit=_optional(message, "memory_limit"),
        platform=_word(message, "platform"),
        saved=_optional(message, "saved"),
        save_seconds=_optional(message, "save_seconds"),
        command=_command(message.get("command")),
        chips=tuple(_chip(chip) for chip in chips),
    )


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def _number(message: dict[str, Any], name: str) -> float:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Malformed(f"{name}: not a number")
    if not 0 <= value <= _MAX_NUMBER or not math.isfinite(value):
        raise Malformed(f"{name}: out of range")
    return float(value)


def _ratio(message: dict[str, Any], name: str) -> float:
    value = _number(message, name)
    if value > _MAX_RATIO:
        raise Malformed(f"{name}: not a share")
    return min(1.0, value)


def _truth(message: dict[str, Any], name: str) -> bool:
    value = message[name]
    if not isinstance(value, bool):
        raise Malformed(f"{name}: neither true nor false")
    return value


def _whole(message: dict[str, Any], name: str) -> int:
    value = _number(message, name)
    if value != int(value):
        raise Malformed(f"{name}: not a whole number")
    return int(value)


def _optional(message: dict[str, Any], name: str) -> float | None:
    return _number(message, name) if name in message else None


def _optional_whole(message: dict[str, Any], name: str) -> int | None:
    return _whole(message, name) if name in message else None


def _word(message: dict[str, Any], name: str) -> str | None:
    value = message.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise Malformed(f"{name}: not a name")
    return value


def _command(value: Any) -> tuple[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in ("id", "state")):
        raise Malformed("command: not an id and a state")
    identity, state = str(value["id"])[:_MAX_STATE], str(value["state"])[:_MAX_STATE]
    return identity, "".join(letter for letter in state if letter.isprintable())


def _chip(value: Any) -> Chip:
    if not isinstance(value, dict):
        raise Malformed("chip: not an object")
    uuid = _word(value, "uuid")
    if uuid is None:
        raise Malformed("uuid: missing")
    ratios = {name: _ratio(value, name) for name in RATIOS if name in value}
    throttle, errors, links = value.get("throttle", {}), value.get("errors", {}), value.get("links", [])
    if not isinstance(throttle, dict) or not isinstance(errors, dict) or not isinstance(links, list):
        raise Malformed("chip: wrong types")
    moved: dict[tuple[str, str], float] = {}
    for link in links[: len(LINKS)]:
        if not isinstance(link, list) or len(link) != 3 or not all(isinstance(word, str) for word in link[:2]):
            raise Malformed("links: not a link, a direction and a number")
        if (name := (link[0], link[1])) not in LINKS:
            raise Malformed("links: unknown")
        moved[name] = _number({"links": link[2]}, "links")
    return Chip(
        uuid=uuid,
        ratios=ratios,
        memory_used=_optional(value, "memory_used"),
        memory_total=_optional(value, "memory_total"),
        power=_optional(value, "power"),
        energy=_optional(value, "energy"),
        throttle={reason: _truth(throttle, reason) for reason in THROTTLE_REASONS if reason in throttle},
        errors={kind: _number(errors, kind) for kind in ERROR_KINDS if kind in errors},
        links=moved,
    )
