"""The report of one process: the agent's datagram, validated.

Any process of the user's container can write to the socket, so nothing is trusted: size, type, finiteness,
range and length are checked here, and everything after works on a `Report`. Whether counters run backwards is for the
state to say, which knows the earlier reports.
"""

import json
import math
import re
import sys
from dataclasses import dataclass, field
from typing import Any, Final

from rightpool import contract

MAX_BYTES: Final = 32 * 1024
MAX_CHIPS: Final = 32

# Upper bounds in seconds of rightpool_step_seconds; +Inf follows.
BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0)

FRAMEWORKS: Final = ("torch", "jax")
LINKS: Final = frozenset({("pcie", "tx"), ("pcie", "rx"), ("nvlink", "tx"), ("nvlink", "rx")})

_MAX_NUMBER: Final = 1e15
_MAX_FLOPS: Final = 1e18  # more than the operator reads of a pod
_MAX_STATE: Final = 120
_MAX_RATIO: Final = 1.1  # slightly above 1 is caused by different clocks; more is invalid
_NAME: Final = re.compile(r"[A-Za-z0-9._:-]{1,80}")


class Malformed(ValueError):
    """A datagram that no agent sends. The message is the reason."""


@dataclass(frozen=True, slots=True)
class Chip:
    """One reading of one chip. Ratios 0–1, bytes, watts, joules; None if the chip lacks the counter."""

    uuid: str
    """Tells it from all others, as its driver or framework does."""
    ratios: dict[str, float] = field(default_factory=dict)
    """By the names in `RATIOS`."""
    memory_used: float | None = None
    """By all programs on the chip."""
    memory_total: float | None = None
    """As large as the chip's memory is."""
    power: float | None = None
    """What the board draws."""
    power_limit: float | None = None
    """What the driver lets the board draw."""
    energy: float | None = None
    """Since the driver was loaded."""
    temperature: float | None = None
    """Celsius."""
    xid: float | None = None
    """The highest critical one so far; 0 for none."""
    repair: float | None = None
    """Of memory: 0 none, 1 waits for a reset, 2 failed."""
    name: str | None = None
    """The product, as the driver names it."""
    sharing: str | None = None
    """How it is divided: mig, mps or none; None where that is not known."""
    rank: int | None = None
    """Of the process that uses it; None where that is not known."""
    pipes: dict[str, float] = field(default_factory=dict)
    """Activity of the pipes beside the matrix units, by name."""
    throttle: dict[str, bool] = field(default_factory=dict)
    """Whether its clocks are held down now, by the driver's reason."""
    errors: dict[str, float] = field(default_factory=dict)
    """Counts since the driver was loaded, by kind."""
    links: dict[tuple[str, str], float] = field(default_factory=dict)
    """Bytes since the agent began, by kind of link and direction."""


@dataclass(frozen=True, slots=True)
class Model:
    """What a process says of its model; None if it does not say."""

    precision: str | None = None
    """One of contract.MODEL_PRECISIONS: what matrix products are computed in."""
    parameter_dtype: str | None = None
    """What parameters are kept in."""
    parameters: int | None = None
    """How many are trained, of the whole model."""
    parameter_bytes: int | None = None
    """What those take, of the whole model."""
    model_bytes: int | None = None
    """What all parameters take, also those that are not trained, of the whole model."""
    degrees: tuple[tuple[str, int], ...] = ()
    """Of parallelism, by the names in contract.MODEL_DEGREES."""
    step_flops: float | None = None
    """Of one optimizer step, of this process."""


@dataclass(frozen=True, slots=True)
class Report:
    """One process' counters since its start."""

    pid: int
    """In the pod."""
    start: int
    """Clock ticks from boot: with the pid, the identity of the process."""
    rank: int
    """Its number among the processes of the program."""
    at: float
    """The process' monotonic clock, seconds."""
    framework: str
    """One of `FRAMEWORKS`."""
    steps: int
    """Optimizer steps."""
    seconds: float
    """The sum of all step times that `counts` counts."""
    counts: tuple[int, ...]
    """Steps by their time: one number a bucket of `BUCKETS`, and one beyond."""
    cpu: float
    """CPU time of the process and of its ended children, seconds."""
    samples: int | None = None
    """Samples that it has trained on; None where they are not seen."""
    input_seconds: float | None = None
    """Time that it waited for data; None where no loader is seen."""
    memory: float | None = None
    """Bytes of the host's memory that are resident; None where the system does not tell."""
    memory_limit: float | None = None
    """Bytes of the host's memory that the container may have; None without a limit."""
    platform: str | None = None
    """What it computes on, such as cpu, gpu or tpu; None where that is not known."""
    saved: float | None = None
    """Unix time of the newest complete checkpoint; None where none was seen."""
    save_seconds: float | None = None
    """How long the program waited for that checkpoint."""
    world: int = 1
    """Processes of the program that this one is a rank of."""
    hooks: str | None = None
    """Which of the agent's hooks failed their self-test; None: all are in place."""
    command: tuple[str, str] | None = None
    """Id and state of the last checkpoint request served; None before the first."""
    trace: tuple[str, str] | None = None
    """Id and state of the last trace that was asked for; None before the first."""
    trace_cost: float | None = None
    """Seconds by which that trace has held up the program; None where that is not known."""
    chips: tuple[Chip, ...] = ()
    """Those that the process uses."""
    model: Model | None = None
    """None where the process says nothing of it."""
    opaque: bool = False
    """Whether it makes steps, and nobody knows how many."""
    derived: bool = False
    """Whether steps are told from backward passes, since no optimizer was seen."""
    memory_retries: int | None = None
    """Allocations that had to free cached memory first; None where they are not counted."""
    compile_seconds: float | None = None
    """Time in which torch.compile or XLA compiled; None where it is not seen."""
    thread_cpu: float | None = None
    """CPU time of its first thread, seconds; None where the system does not tell."""
    thread_waited: float | None = None
    """Seconds that this thread was ready and had no core; likewise."""
    saving_seconds: float | None = None
    """Time in which the program stood still for a save; None where no save was seen."""

    @property
    def key(self) -> tuple[int, int]:
        return self.pid, self.start


RATIOS: Final = (
    "busy",
    "utilization",
    "compute_active",
    "matrix_active",
    "memory_bandwidth",
    "occupancy",
    "clock",
    "others",
)


def parse(data: bytes) -> Report:
    """Parse and validate a datagram. Raises Malformed."""
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
        world=max(1, _optional_whole(message, "world") or 1),
        hooks=_word(message, "hooks"),
        command=_command(message, "command"),
        trace=_command(message, "trace"),
        trace_cost=_optional(message, "trace_cost"),
        chips=tuple(_chip(chip) for chip in chips),
        model=_model(message.get("model")),
        opaque=_truth(message, "opaque") if "opaque" in message else False,
        derived=_truth(message, "derived") if "derived" in message else False,
        memory_retries=_optional_whole(message, "memory_retries"),
        compile_seconds=_optional(message, "compile_seconds"),
        thread_cpu=_optional(message, "thread_cpu"),
        thread_waited=_optional(message, "thread_waited"),
        saving_seconds=_optional(message, "saving_seconds"),
    )


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


def _number(message: dict[str, Any], name: str, most: float | None = None) -> float:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Malformed(f"{name}: not a number")
    if not 0 <= value <= (_MAX_NUMBER if most is None else most) or not math.isfinite(value):
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


def _command(message: dict[str, Any], field_name: str) -> tuple[str, str] | None:
    value = message.get(field_name)
    if value is None:
        return None
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in ("id", "state")):
        raise Malformed(f"{field_name}: not an id and a state")
    identity, state = str(value["id"])[:_MAX_STATE], str(value["state"])[:_MAX_STATE]
    return identity, "".join(letter for letter in state if letter.isprintable())


def _model(value: Any) -> Model | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Malformed("model: not an object")
    words = {name: _word(value, name) for name in contract.MODEL_WORDS}
    if not {*words.values()} <= {None, *contract.MODEL_PRECISIONS}:
        raise Malformed("model: unknown precision")
    return Model(
        **words,
        parameters=_optional_whole(value, "parameters"),
        parameter_bytes=_optional_whole(value, "parameter_bytes"),
        model_bytes=_optional_whole(value, "model_bytes"),
        degrees=tuple((name, _whole(value, name)) for name in contract.MODEL_DEGREES if name in value),
        step_flops=_flops(value),
    )


def _flops(model: dict[str, Any]) -> float | None:
    """What is too much to be read is missing: no reason to refuse the steps."""
    flops = _number(model, "step_flops", sys.float_info.max) if "step_flops" in model else None
    return None if flops is None or flops > _MAX_FLOPS else flops


def _chip(value: Any) -> Chip:
    if not isinstance(value, dict):
        raise Malformed("chip: not an object")
    uuid = _word(value, "uuid")
    if uuid is None:
        raise Malformed("uuid: missing")
    ratios = {name: _ratio(value, name) for name in RATIOS if name in value}
    sharing = _word(value, "sharing")
    if sharing not in (None, *contract.SHARINGS):
        raise Malformed("sharing: unknown")
    throttle, errors, links = value.get("throttle", {}), value.get("errors", {}), value.get("links", [])
    pipes = value.get("pipes", {})
    if not all(isinstance(one, dict) for one in (throttle, errors, pipes)) or not isinstance(links, list):
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
        power_limit=_optional(value, "power_limit"),
        energy=_optional(value, "energy"),
        temperature=_optional(value, "temperature"),
        xid=_optional(value, "xid"),
        repair=_optional(value, "repair"),
        name=_word(value, "name"),
        sharing=sharing,
        rank=_optional_whole(value, "rank"),
        pipes={pipe: _ratio(pipes, pipe) for pipe in contract.PIPES if pipe in pipes},
        throttle={reason: _truth(throttle, reason) for reason in contract.REASONS if reason in throttle},
        errors={kind: _number(errors, kind) for kind in contract.ERRORS if kind in errors},
        links=moved,
    )
