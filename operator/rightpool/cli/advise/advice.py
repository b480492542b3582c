"""To which partition a program belongs, and the line that asks Slurm for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rightpool.cli.advise.inventory import Partition
from rightpool.cli.compare import report
from rightpool.cli.compare.report import ComparisonReport
from rightpool.cli.compare.rows import ComparedRow
from rightpool.cli.documents import document_head


@dataclass(frozen=True, slots=True)
class Advice:
    """Where to submit it."""

    partition: Partition | None
    """None where no partition passes the gates."""
    chips: int
    """That are asked for there."""
    better: bool
    """Whether it has other chips than those that the program ran on, and is better than these by the threshold; also
    where no partition has these."""

    @property
    def sbatch(self) -> str | None:
        """Options of sbatch."""
        if self.partition is None:
            return None
        each = min(self.chips, self.partition.chips_per_node)
        while self.chips % each:
            each -= 1
        nodes = self.chips // each
        return f"--partition={self.partition.partition} --nodes={nodes} --gres={self.partition.gres}:{each}"


def advised(found: ComparisonReport, partitions: Mapping[str, Partition], ran_on: str, threshold: float) -> Advice:
    """partitions: by the name of their row. ran_on: key of the chips that the program was measured on. threshold: share
    of the best score by which theirs must be below it."""
    there = [row for row in found.ranked if row.name in partitions and row.name in found.scores]
    if not there:
        return Advice(None, 0, False)
    best = there[0]
    home = next((row for row in there if row.chip.key == ran_on), None)
    if home is None:
        return _at(best, partitions, True)
    better = found.scores[home.name] <= found.scores[best.name] * (1.0 - threshold)
    return _at(best if better else home, partitions, better)


def _at(row: ComparedRow, partitions: Mapping[str, Partition], better: bool) -> Advice:
    return Advice(partitions[row.name], row.chips, better)


def document(found: ComparisonReport, advice: Advice) -> dict[str, Any]:
    """The object that the head of command.py describes."""
    comparison = report.document(found)
    return {**document_head("Advice"), "better": advice.better, "sbatch": advice.sbatch, "comparison": comparison}
