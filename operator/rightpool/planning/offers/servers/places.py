"""A server in every pool: by its batches where it has run, and elsewhere by how much faster the chips do any work."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rightpool.api.status import PlaceSize
from rightpool.hardware.accelerator import Accelerator
from rightpool.planning.jobs.sizing import Sizing
from rightpool.planning.offers.servers.recorded import server_line
from rightpool.planning.offers.servers.sizing import LatencyTarget, sized
from rightpool.prediction.chip_data import shipped
from rightpool.prediction.columns import Floats
from rightpool.prediction.server import token_speedup
from rightpool.prediction.tokens import ServerLine, TokenLines, cache_ratio
from rightpool.prediction.transfer import Transfer
from rightpool.profiles.loads import Points


class PoolChip(NamedTuple):
    """A pool, as far as batches depend on it."""

    name: str
    """Of the AcceleratorPool."""
    chip: Accelerator
    """Its chips."""


class ChipSpeed(NamedTuple):
    """By how much faster one chip is than another: as likely less as more, and the standard deviation of its log."""

    any: tuple[float, float]
    """With work of an unknown kind, of which prompts are."""
    tokens: tuple[float, float]
    """With tokens, one after the other."""
    cache: float
    """How many times as many keys and values it has memory for, at least."""


def with_places(
    sizing: Sizing,
    home: str,
    pools: Sequence[PoolChip],
    seen: Callable[[str], Points | None],
    counts: Floats,
    target: LatencyTarget,
    needed: float = 0.0,
) -> Sizing:
    """With what the server would be in each pool whose chips are known. home: the pool where it is; seen: what its
    batches took in a pool; counts: of each SLOT, or NaN; needed: bytes of each chip beside keys and values, at most."""
    if sizing.line is None or sizing.peak is None:
        return sizing
    speeds = _speeds(home, pools, needed)
    found: list[PlaceSize] = []
    predicted: dict[ChipSpeed, PlaceSize] = {}  # pools of one chip are alike
    for pool in pools:
        points = seen(pool.name)
        speed = speeds.get(pool.name)
        if pool.name == home:
            size = sized(pool.name, sizing.line, counts, target)
        elif points is not None:
            line = server_line(points, sizing.targets, _tokens(sizing.line))
            line = line if line is None or speed is None else _held(line, _there(sizing.line, speed))
            size = None if line is None else sized(pool.name, line, counts, target)
        elif speed is None:
            continue
        else:
            size = predicted.get(speed) or sized(pool.name, _there(sizing.line, speed), counts, target, measured=False)
            if size is not None:
                predicted[speed] = size = replace(size, pool=pool.name)
        if size is not None:
            found.append(size)
    return replace(sizing, places=tuple(found))


def _tokens(line: ServerLine) -> float:
    return line.tokens if isinstance(line, TokenLines) else math.nan


def _there(line: ServerLine, speed: ChipSpeed) -> ServerLine:
    if isinstance(line, TokenLines):
        return line.elsewhere(speed.tokens, speed.any, speed.cache)
    return line.elsewhere(*speed.any)


def _held(line: ServerLine, predicted: ServerLine) -> ServerLine:
    """With what its memory is predicted to hold where no window tells."""
    if isinstance(line, TokenLines) and isinstance(predicted, TokenLines) and math.isinf(line.held):
        return replace(line, held=predicted.held)
    return line


def _speeds(home: str, pools: Sequence[PoolChip], needed: float) -> Mapping[str, ChipSpeed]:
    """By how much faster each pool's chips are than those at home. Without those whose figures are missing."""
    names = [pool.name for pool in pools]
    if home not in names:
        return {}
    transfer, here = Transfer.among([pool.chip for pool in pools], shipped()), names.index(home)
    logs, variances = transfer.log[-1, here].tolist(), transfer.variances[0, -1, here].tolist()
    return {
        pool.name: ChipSpeed(
            (math.exp(log), math.sqrt(variance)),
            token_speedup(pools[here].chip.memory_bandwidth, pool.chip.memory_bandwidth),
            cache_ratio(pools[here].chip.memory_bytes, pool.chip.memory_bytes, needed),
        )
        for pool, log, variance in zip(pools, logs, variances, strict=True)
        if not math.isnan(log)
    }
