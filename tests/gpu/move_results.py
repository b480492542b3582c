"""What became of a move on real chips, from the ledger and from what the program printed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from demo.job import Job
from rightpool.api.ledger import LedgerEntry
from tests.gpu.move_pools import Case

GOES_ON: Final = "goes on from step "
_RECENT: Final = 10  # lines that tell the slope and the roughness of a curve
LOSS_JUMPS: Final = 0.05  # of a loss that is no more of the same curve, where the curve itself is smoother


@dataclass(frozen=True)
class Result:
    """A move as the ledger has it. Throughput in samples/s, costs in dollars a million samples."""

    case: str
    source: str
    target: str
    outcome: str
    bottleneck: str
    before: float
    promised: float
    realised: float
    cost_before: float
    cost_after: float
    lost_seconds: float
    losses: tuple[float, float]
    """The last one that the program printed before the move, and the first one afterwards; NaN where there is none."""
    profile: dict[str, Any]
    """The status' profile right before the move."""
    complaint: str = ""

    @property
    def error(self) -> float:
        """Of the promised throughput, as a share of the realised one."""
        return abs(self.promised / self.realised - 1.0)


def moves_of(job: Job) -> list[dict[str, Any]]:
    """Entries of the ledger for moves that were begun."""
    return [one for one in job.history if one["action"] in ("Move", "Resize") and one["outcome"] != "Held"]


def result(case: Case, profile: dict[str, Any], entry: dict[str, Any], before: str, after: str) -> Result:
    """An entry of the ledger, with what was expected of it.

    profile: the status' before the move. before, after: what the program has printed.
    """
    went_on = [int(line.split()[-1]) for line in after.splitlines() if line.startswith(GOES_ON)]
    ledger, curve = LedgerEntry.from_dict(entry), _printed(before)
    [(step, last), *_] = curve[-1:] or [(0, math.nan)]
    [(later, first), *_] = _printed(after)[:1] or [(0, math.nan)]
    made = Result(
        case=case.name,
        source=f"{entry['from']['chips']} × {entry['from']['pool']}",
        target=f"{entry['to']['chips']} × {entry['to']['pool']}",
        outcome=str(entry["outcome"]),
        bottleneck=str(profile.get("bottleneck") or "-"),
        before=float(entry.get("baseline") or "nan"),
        promised=float(entry.get("predicted") or "nan"),
        realised=float(entry.get("realised") or "nan"),
        cost_before=ledger.baseline_cost_per_million or math.nan,
        cost_after=ledger.realised_cost_per_million or math.nan,
        lost_seconds=float(entry.get("lostSeconds") or "nan"),
        losses=(last, first),
        profile=profile,
    )
    wanted = "RolledBack" if case.undone else "Verified"
    complaint = "" if made.outcome == wanted else f"{made.outcome} instead of {wanted}"
    if not went_on or went_on[-1] < step:
        complaint += f" the program began anew: at step {step} before, went on from {went_on}"
    elif not _goes_on(curve, later, first):
        complaint += f" the loss jumped from {last} to {first}"
    return dataclasses.replace(made, complaint=complaint.strip())


def shows_loss(log: str) -> bool:
    """Whether the program has come to a step since it went on."""
    return bool(_printed(log.partition(GOES_ON)[2]))


def _printed(log: str) -> list[tuple[int, float]]:
    """Steps and their losses."""
    words = (line.split() for line in log.splitlines() if line.startswith("step "))
    return [(int(step), float(loss)) for _, step, _, loss, *_ in words]


def _goes_on(curve: Sequence[tuple[int, float]], step: int, loss: float) -> bool:
    """Whether a loss at a step is of the same curve: from the last one to what it comes to by its slope until there,
    give or take LOSS_JUMPS or twice the largest change from one line to the next. A faster chip makes more steps from
    one line to the next."""
    recent = curve[-_RECENT:]
    if not recent:
        return False
    (early, former), (late, last) = recent[0], recent[-1]
    slope = (last - former) / (late - early) if late > early else 0.0
    trend = last + slope * (step - late)
    rough = max((abs(after - before) for (_, before), (_, after) in pairwise(recent)), default=0.0)
    room = max(LOSS_JUMPS * abs(last), 2.0 * rough)
    return min(last, trend) - room <= loss <= max(last, trend) + room


def table(results: Iterable[Result]) -> str:
    """Markdown."""
    lines = [
        "| job | from | to | bottleneck | samples/s before | promised | realised | off by | $/M before | after "
        "| loss before | after | verdict |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in results:
        lines.append(
            f"| {one.case} | {one.source} | {one.target} | {one.bottleneck} | {one.before:,.0f} | {one.promised:,.0f} "
            f"| {one.realised:,.0f} | {one.error:.0%} | {one.cost_before:.4g} | {one.cost_after:.4g} "
            f"| {one.losses[0]:.4g} | {one.losses[1]:.4g} | {', '.join(filter(None, (one.outcome, one.complaint)))} |"
        )
    return "\n".join(lines)
