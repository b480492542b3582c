"""What moved between two runs of a program: its precision, the work of a sample, or a part of its step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from rightpool.api.wording import percent

# A share of the step that has changed by less is not worth a word.
_MOVED: Final = 0.03
PARTS: Final = {
    "input": "waiting for input",
    "saving": "saving",
    "host": "waiting for the host",
    "communication": "communicating alone",
    "chip": "working on the chip",
}
"""What the chips do in a step, by the names of shares; in this order a status has them."""


class MeasuredStep(NamedTuple):
    """What the step of a run was like."""

    rate: float
    """Units a second."""
    shares: Mapping[str, float]
    """Of the step, by the names of PARTS; empty where they are not known."""
    precision: str | None
    """Arithmetic of its matrix multiplications; None where that is not known."""


def percent_of(log: float) -> str:
    """A change, with its sign."""
    return f"{math.expm1(log):+.1%}"


def moved_text(before: MeasuredStep, after: MeasuredStep, sign: float) -> str:
    """The part of a unit's time that has grown most, or with a sign of -1 has shrunk most; empty where none has. Both
    rates count the same."""
    was_in, now_in = before.precision, after.precision
    if was_in is not None and now_in is not None and was_in != now_in:
        return f"it computes in {now_in}, and did in {was_in}"
    early, late = ({part: share / one.rate for part, share in one.shares.items()} for one in (before, after))
    moved = {part: sign * (late[part] - early[part]) for part in early.keys() & late.keys()}
    part = max(moved, key=lambda one: moved[one], default=None)
    if part is None or moved[part] * before.rate < _MOVED:
        return ""
    was, now = before.shares[part], after.shares[part]
    if percent(was) == percent(now):
        return f"{PARTS[part]} takes {'longer' if sign > 0.0 else 'less'}"
    return f"{PARTS[part]} went from {percent(was)} to {percent(now)} of a step"
