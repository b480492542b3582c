"""Bars that are not reached, beside what an ablation of the same rows reaches and why no model does better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.scored import INTERVAL, Line

DRAWN: Final = "ablation: rates from the model"
"""Rates that are drawn from the model itself, so that nothing of it is wrong."""

BEST_SHARE: Final = "ablation: precision unknown, best share of half"
"""The share of half precision that suits the very rows that are predicted."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What keeps a case from its bar."""

    ablation: str
    """The case that shows it."""
    reason: str
    """In a few words."""


LIMITS: Final = {
    "another accelerator": Limit("ablation: median ratio of other jobs", "jobs of one fleet differ by this much"),
    "another accelerator, known to the fleet": Limit(
        "ablation: median ratio of other jobs", "jobs of one fleet differ by this much"
    ),
    "another accelerator, same family": Limit(
        f"{DRAWN}, same family", "jobs differ by this much on chips of one kind, too"
    ),
    "accelerator that the fleet never ran": Limit(f"{DRAWN}, never ran", "jobs and chips differ by this much"),
    "precision unknown against known": Limit(BEST_SHARE, "fp32 without tf32 takes 2 to 6 times as long"),
    "choice of pool, pairs in order": Limit(
        f"{DRAWN}, pairs in order", "many pools differ by only 2% to 10% in samples a dollar"
    ),
    "size, two sizes seen, one node": Limit(
        "size, two sizes seen, one node, no late gains", "some later doublings gain more than earlier ones"
    ),
    "blind 1 to 8": Limit(
        "ablation: median scaling of other jobs, 1 to 8", "jobs of one source differ by this much on the same chips"
    ),
}
"""By case. A case that is not here is missed for a reason that is not known."""


def is_whole(line: Line) -> bool:
    """Whether it is of all pairs of a case, and not of a source, an accelerator or a rule."""
    return line.source == "all" or line.source.startswith("x ")


def limits(lines: Sequence[Line]) -> list[str]:
    """Markdown: one row for each case whose bar is missed as a whole."""
    whole = {line.case: line for line in lines if is_whole(line) and INTERVAL not in line.case}
    rows = ["| missed | reaches | bar | ablation | reaches | what limits it |", "|---|---|---|---|---|---|"]
    for case, line in whole.items():
        if line.ok is not False:
            continue
        limit = LIMITS.get(case, Limit("", "not known"))
        shown = "" if limit.ablation not in whole else _figures(whole[limit.ablation])
        ablation = limit.ablation.removeprefix("ablation: ")
        rows.append(f"| {case} | {_figures(line)} | {line.bar} | {ablation} | {shown} | {limit.reason} |")
    return [*rows, ""] if len(rows) > 2 else []


def _figures(line: Line) -> str:
    if line.order is not None:
        return f"{line.order:.1%}"
    if line.source.startswith("x "):
        return line.source
    return "" if line.median is None or line.p90 is None else f"{line.median:.1%} / {line.p90:.1%}"
