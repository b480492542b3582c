"""What a server's record says of its size, where it runs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from rightpool.api.units import HOUR
from rightpool.planning.jobs.sizing import BARS, SHORTEST, Sizing
from rightpool.planning.jobs.time_limits import Limits
from rightpool.planning.offers.servers.floor import floor_now
from rightpool.planning.offers.servers.sizing import EXTRAPOLATED, LatencyTarget, servable
from rightpool.prediction.columns import Floats
from rightpool.prediction.server import LoadLine, fit
from rightpool.prediction.tokens import ServerLine, TokenLines
from rightpool.profiles.demand import SLOT
from rightpool.profiles.loads import Points
from rightpool.profiles.served import RequestTime

SAME_LINE: Final = 0.05
"""Lines whose full batches are as fast, but for this share, serve the same."""

_BAR: Final = 3 * HOUR
_ALONE: Final = 1.05  # requests of the fullest batches of a server that takes one at a time


def recorded_sizing(
    counts: Floats, points: Points | None, targets: Limits, place: str, now: float, tokens: float = math.nan
) -> Sizing:
    """Without what a replica can take, which takes far longer. counts: of each SLOT of the last week, or NaN. tokens:
    of an answer, in the mean."""
    recorded = float(np.isfinite(counts).sum()) * SLOT
    peak = floor_now(counts) if recorded >= SHORTEST else None
    line = None if points is None else server_line(points, targets, tokens)
    return Sizing(targets, place, recorded, peak, week_picture(counts, now), line)


def week_picture(counts: Floats, now: float) -> str:
    """The peak of each three hours of a record that ends now, as bars up to the highest one."""
    slots = math.floor(now / SLOT) - len(counts) + np.arange(len(counts))
    bucket = slots // round(_BAR / SLOT)
    peaks = np.full(int(bucket[-1] - bucket[0]) + 1, np.nan)
    np.fmax.at(peaks, bucket - bucket[0], counts)
    known = np.isfinite(peaks)
    if not known.any():
        return ""
    highest = max(float(peaks[known].max()), 1e-9)
    levels = [math.ceil(peak / highest * len(BARS)) if peak == peak else None for peak in peaks.tolist()]
    return "".join("·" if level is None else BARS[max(level, 1) - 1] for level in levels)


def server_line(points: Points, targets: Limits, tokens: float) -> ServerLine | None:
    """What its targets are judged by; None where nothing tells that."""
    made, known = points.tokens, RequestTime.WHOLE not in targets
    if made is None or not known:
        return line_through(points) if made is None and not known else None
    step, timed = line_through(points), np.isfinite(made.first)
    first = None
    if timed.any():
        first = fit(points.load[timed], made.first[timed], points.weight[timed], step.most)
    if math.isnan(tokens) or (first is None and RequestTime.FIRST_TOKEN in targets):
        return None
    # Like prompts may share a part of it: full batches tell best what one more takes.
    share = _mean(made.cache, points.weight * points.load)
    spread, first_spread = (_mean(one, points.weight) for one in (made.spread, made.first_spread))
    return TokenLines(step, first, spread, first_spread, tokens, 1.0 / share if share > 0.0 else math.inf)


def _mean(of: Floats, weight: Floats) -> float:
    known = np.isfinite(of)
    return float(np.average(of[known], weights=weight[known])) if known.any() else 0.0


def line_through(points: Points) -> LoadLine:
    """Batches may become a little fuller than any that was seen: nobody says how full they may be."""
    fullest = float(points.load.max())
    most = 1.0 if fullest <= _ALONE else float(math.ceil(EXTRAPOLATED * fullest))
    return fit(points.load, points.seconds, points.weight, most)


def with_servable(sizing: Sizing, counts: Floats) -> Sizing:
    """With what a replica can take, where the record and the line tell."""
    if sizing.peak is None or sizing.line is None or not np.nansum(counts) > 0.0:
        return sizing
    return replace(sizing, servable=servable(sizing.line, counts, LatencyTarget.of(sizing.targets)))


def outdated(sizing: Sizing, before: Sizing) -> bool:
    """Whether what a replica could take before says nothing of it now."""
    if (sizing.targets, sizing.place) != (before.targets, before.place) or before.servable is None:
        return True
    if sizing.line is None or before.line is None:
        return sizing.line is not before.line
    return abs(math.log(sizing.line.capacity / before.line.capacity)) > SAME_LINE
