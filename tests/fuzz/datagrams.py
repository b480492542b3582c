"""Datagrams as the user's container can send them, through the sidecar's state to its pages."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from random import Random
from typing import Any, Final

from rightpool import contract
from rightpool.telemetry import exposition as reader
from rightpool_profiler import exposition
from rightpool_profiler.receiver import Receiver
from rightpool_profiler.state import State
from tests.fuzz.mutation import broken, damaged, encoded
from tests.fuzz.target import Finding

CHIPS: Final = 4
MAX_PAGE: Final = 256 * 1024
_UNIX: Final = 1_900_000_000.0
_RATIOS: Final = ("busy", "compute_active", "matrix_active", "memory_bandwidth", "occupancy", "others")
_NAME: Final = re.compile(r"[A-Za-z0-9._:-]{1,80}")
_SHARE_METRICS: Final = (
    *(contract.CHIP_BUSY, contract.CHIP_COMPUTE_ACTIVE, contract.CHIP_MATRIX_ACTIVE, contract.CHIP_MEMORY_BANDWIDTH),
    *(contract.CHIP_OCCUPANCY, contract.CHIP_THROTTLE, contract.STEP_SHARE, contract.SOURCE_UP, contract.FIELD_QUALITY),
)
_COUNTERS: Final = (contract.STEPS, contract.SAMPLES, f"{contract.STEP_SECONDS}_count", f"{contract.STEP_SECONDS}_sum")


class Datagrams:
    """One sidecar with a simulated clock, so that timeouts and windows pass within seconds."""

    name = "datagrams"

    def __init__(self) -> None:
        self.state = State(10.0, CHIPS)
        self._receiver = Receiver(Path("unbound"), self.state)
        self._now = 1000.0
        self._counters: dict[str, float] = {}

    def feed(self, random: Random) -> bool:
        self._now += random.choice((0.0005, 0.001, 0.002, 0.002, 0.003)) if random.random() < 0.999 else 40.0
        data = self._datagram(random)
        before = self.state.taken
        self._receiver.take(data, self._now, _UNIX)
        taken = self.state.taken > before
        if taken:
            _believable(json.loads(data))
        return taken

    def check(self) -> None:
        """The pages have only possible values, and counters never decrease."""
        samples, histograms = self.state.exposition(self._now)
        page = exposition.render(samples, histograms)
        if len(page) > MAX_PAGE:
            raise Finding(f"a page of {len(page)} bytes")
        reader.parse(page)
        for sample in samples:
            if not math.isfinite(sample.value) or sample.value < 0:
                raise Finding(f"{sample}")
            if sample.metric in _SHARE_METRICS and sample.value > 1:
                raise Finding(f"{sample}")
        for line in page.splitlines():
            name, _, value = line.rpartition(" ")
            if name in _COUNTERS:
                if float(value) < self._counters.get(name, 0.0):
                    raise Finding(f"{line}, and it was {self._counters[name]}")
                self._counters[name] = float(value)
        json.dumps([self.state.processes(self._now), self.state.sources(self._now)], allow_nan=False)

    def _datagram(self, random: Random) -> bytes:
        document = broken(report(random, self._now), random, random.choice((0, 0, 1, 1, 1, 2, 3)))
        data = encoded(document)
        return damaged(data, random, random.randrange(1, 4)) if random.random() < 0.25 else data


def report(random: Random, now: float) -> dict[str, Any]:
    """A report of an agent: counters that increase with time, of one of more processes than a pod may have."""
    pid = random.randrange(1, 400)
    steps = int(now * 3)
    counts = [0] * 17
    counts[pid % 17] = steps
    message: dict[str, Any] = {
        "pid": pid,
        "start": 3456,
        "rank": pid % 8,
        "at": now,
        "framework": random.choice(("jax", "torch")),
        "steps": steps,
        "seconds": steps * 0.31,
        "counts": counts,
        "cpu": now / 2,
    }
    if random.random() < 0.7:
        message |= {"samples": steps * 32, "input_seconds": steps * 0.01, "memory": 2e9, "memory_limit": 8e9}
        message |= {"platform": random.choice(("cpu", "gpu", "tpu")), "saved": _UNIX - 60.0, "save_seconds": 1.5}
        message |= {"command": {"id": "d-7", "state": "signalled"}, "trace": {"id": "now", "state": "capturing"}}
    if random.random() < 0.5:
        message["chips"] = [_chip(random, now) for _ in range(random.randrange(1, 4))]
    return message


def _chip(random: Random, now: float) -> dict[str, Any]:
    return {
        "uuid": f"GPU-{random.randrange(40)}",
        **{name: random.random() for name in _RATIOS},
        "memory_used": 1e10,
        "memory_total": 8e10,
        "power": 300.0,
        "energy": now * 300.0,
        "throttle": {"power_cap": random.random() < 0.5, "hardware_thermal": False},
        "errors": {"ecc_corrected": 3.0, "ecc_uncorrected": 0.0},
        "links": [["pcie", "tx", now * 1e9], ["nvlink", "rx", now * 1e10]],
    }


def _believable(message: Any) -> None:
    """Whether an accepted datagram has possible values. Written independently of the parser."""
    for name in ("pid", "start", "rank", "steps"):
        _amount(message, name, whole=True)
    for name in ("at", "seconds", "cpu"):
        _amount(message, name)
    if len(message["counts"]) != 17:
        raise Finding(f"counts {message['counts']!r}")
    for count in message["counts"]:
        _amount({"count": count}, "count", whole=True)
    for name in ("samples", "input_seconds", "memory", "memory_limit", "saved", "save_seconds"):
        if name in message:
            _amount(message, name, whole=name == "samples")
    if message["framework"] not in ("jax", "torch"):
        raise Finding(f"framework {message['framework']!r}")
    platform = message.get("platform")
    if platform is not None and not _NAME.fullmatch(platform):
        raise Finding(f"platform {platform!r}")
    for chip in message.get("chips", []):
        _believable_chip(chip)


def _believable_chip(chip: Any) -> None:
    if not _NAME.fullmatch(chip["uuid"]):
        raise Finding(f"uuid {chip['uuid']!r}")
    for name in (*_RATIOS, "memory_used", "memory_total", "power", "energy"):
        if name in chip:
            _amount(chip, name)
    for name in _RATIOS:
        if chip.get(name, 0) > 1.1:
            raise Finding(f"{name} {chip[name]!r} is no share")
    for reason in ("power_cap", "hardware_thermal"):
        if reason in chip.get("throttle", {}) and not isinstance(chip["throttle"][reason], bool):
            raise Finding(f"throttle {chip['throttle']!r}")
    for kind in ("ecc_corrected", "ecc_uncorrected"):
        if kind in chip.get("errors", {}):
            _amount(chip["errors"], kind)
    for link in chip.get("links", [])[:4]:
        _amount({"bytes": link[2]}, "bytes")


def _amount(holder: dict[str, Any], name: str, *, whole: bool = False) -> None:
    value = holder[name]
    if type(value) not in (int, float) or not 0 <= value <= 1e15 or (whole and value != int(value)):
        raise Finding(f"{name} {value!r}")
