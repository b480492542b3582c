"""Other sizes, other links, slices of one chip with counters."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.scored import Posed, Question, Scored, answers, pool, profile
from rightpool.api.placement import Placement
from rightpool.api.pool import LinkKind
from rightpool.api.traits import ModelTraits
from rightpool.hardware.accelerator import Accelerator, Link, Price
from rightpool.hardware.catalog import Catalog
from rightpool.hardware.vendors.nvidia import NVIDIA
from rightpool.prediction.predictor import Predictor
from rightpool.profiles.sample import Field
from tools.fit.scaling import Row, Scaling, table
from tools.fit.throughput import measured, number


def _measured(path: Path, *columns: str) -> list[Row]:
    """Rows of counters that have positive numbers in these columns."""
    return [row for row in table(path) if all(measured(row[column]) is not None for column in columns)]


def _shown(row: Row, columns: dict[Field, tuple[str, float]]) -> dict[Field, float]:
    """Counters of a row, by the column and the factor of each; those without a number are absent."""
    found = {name: number(row[column]) for name, (column, _) in columns.items()}
    return {name: value * columns[name][1] for name, value in found.items() if value is not None}


def _placed(chip: Accelerator, count: int) -> Placement:
    """Eight chips a pod; the slices of a TPU are what they are."""
    pods = max(1, count // 8)
    return Placement(chip.key.lower(), count, pods)


@dataclass(frozen=True, slots=True)
class SizeCase:
    """Sizes to predict from others, to be asked of several models."""

    posed: Posed
    truths: list[tuple[Scaling, int, int]]
    """What each question is of: from so many chips to so many."""

    @classmethod
    def of(cls, found: Sequence[Scaling], asked: Iterable[tuple[Scaling, int, int | None, int]]) -> SizeCase:
        """asked: of which, from which size, the other one that was seen, and which is asked for."""
        pools = {scaling.chip.key: pool(scaling.chip.key.lower(), scaling.chip) for scaling in found}
        questions, truths = [], []
        for scaling, here, before, target in asked:
            seen = {} if before is None else {_placed(scaling.chip, before): scaling.rates[before]}
            made = profile(here, scaling.rates[here])
            place = _placed(scaling.chip, here)
            questions.append(Question(made, place, (_placed(scaling.chip, target),), seen))
            truths.append((scaling, here, target))
        return cls(Posed.of(pools.values(), questions), truths)

    def scored(self, predictor: Predictor) -> list[Scored]:
        """What a model predicts, beside linear growth."""
        made = []
        for (scaling, here, target), (answer,) in zip(self.truths, self.posed.answers(predictor), strict=True):
            if answer is not None:
                linear = math.log(scaling.rates[here] * target / here)
                truth = math.log(scaling.rates[target])
                key = f"{scaling.chip.key} {scaling.chip.intra_link.kind.value}"
                made.append(Scored(scaling.source, key, *answer, truth, {"linear": linear}))
        return made


def two_sizes(found: Sequence[Scaling], across: bool) -> SizeCase:
    """Two sizes seen, the larger one now, and any third, within one node or across."""
    return SizeCase.of(
        found,
        (
            (scaling, here, before, target)
            for scaling in found
            for before, here in itertools.combinations(scaling.rates, 2)
            for target in scaling.rates
            if target not in (here, before) and (max(target, here) > 8) is across
        ),
    )


def blind(found: Sequence[Scaling], sizes: Sequence[int] = (8,)) -> SizeCase:
    """From one chip to others of a node."""
    return SizeCase.of(
        found,
        (
            (scaling, 1, None, target)
            for scaling in found
            for target in sizes
            if 1 in scaling.rates and target in scaling.rates
        ),
    )


# --- slices of one chip ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Slices:
    """From one slice of a chip with its counters to every other."""

    counted: list[Scored] = field(default_factory=list)
    alone: list[Scored] = field(default_factory=list)


def slices(predictor: Predictor, path: Path) -> Slices:
    """All pairs of slices of all workloads of the file."""
    jobs: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in _measured(path, "sms", "samples_per_s", "measured_bf16_tflops", "measured_copy_gbps"):
        jobs[row["workload"]][int(row["sms"])] = row
    whole = max((sms for job in jobs.values() for sms in job), default=0)
    link = Link(LinkKind.NVLINK, 300e9)
    copies = {int(row["sms"]): float(row["measured_copy_gbps"]) for job in jobs.values() for row in job.values()}

    def chip(row: Row) -> Accelerator:
        rates = {"bf16": float(row["measured_bf16_tflops"]) * 1e12}
        bandwidth = float(row["measured_copy_gbps"]) * 1e9
        return Accelerator(row["slice"], NVIDIA, "hopper", rates, 1, bandwidth, None, link, link, Price(), True)

    pools = {row["slice"]: pool(row["slice"].lower(), chip(row), 1) for job in jobs.values() for row in job.values()}
    made = Slices()
    for counted in (True, False):
        questions, truths = [], []
        for name, job in jobs.items():
            for one, other in itertools.permutations(sorted(job), 2):
                here, there = job[one], job[other]
                # Counters are shares of the whole chip; the memory's share is of what the slice can move.
                columns = {
                    Field.CHIP_BUSY: ("graphics_util", 0.01),
                    Field.COMPUTE_ACTIVE: ("sm_util", 0.01 * whole / one),
                    Field.MATRIX_ACTIVE: ("tensor_util", 0.01 * whole / one),
                    Field.MEMORY_BANDWIDTH: ("dram_bw_util", 0.01 * copies[whole] / copies[one]),
                }
                shown = _shown(here, columns)
                made_from = profile(
                    1, float(here["samples_per_s"]), shown if counted else {}, ModelTraits(precision="bf16")
                )
                target = Placement(there["slice"].lower(), 1, 1)
                questions.append(Question(made_from, Placement(here["slice"].lower(), 1, 1), (target,)))
                flops = math.log(float(there["measured_bf16_tflops"]) / float(here["measured_bf16_tflops"]))
                memory = math.log(copies[other] / copies[one])
                truths.append((name, here, there, flops, memory))
        found = answers(predictor, pools.values(), questions)
        for (_, here, there, flops, memory), (answer,) in zip(truths, found, strict=True):
            if answer is not None:
                begin = math.log(float(here["samples_per_s"]))
                rules = {"peak FLOP/s": begin + flops, "sqrt(FLOP/s x bandwidth)": begin + 0.5 * (flops + memory)}
                truth = math.log(float(there["samples_per_s"]))
                (made.counted if counted else made.alone).append(
                    Scored("slices", there["slice"], *answer, truth, rules)
                )
    return made


# --- several chips with and without NVLink ---------------------------------------------------------------------------


@dataclass(slots=True)
class Ddp:
    """From one chip to several, from two sizes to a third, and back, by the link."""

    blind: dict[str, list[Scored]] = field(default_factory=lambda: defaultdict(list))
    more: dict[str, list[Scored]] = field(default_factory=lambda: defaultdict(list))
    back: dict[str, list[Scored]] = field(default_factory=lambda: defaultdict(list))


def ddp(predictor: Predictor, path: Path, catalog: Catalog) -> Ddp:
    """All that the file has of these."""
    jobs: dict[tuple[str, str], dict[int, Row]] = defaultdict(dict)
    for row in _measured(path, "gpus", "params", "samples_per_s"):
        jobs[row["workload"], row["link"]][int(row["gpus"])] = row
    chip = catalog.get("H200-SXM-141GB")
    pcie = catalog.link(LinkKind.PCIE, chip) or chip.inter_link
    pools = [pool("nvlink", chip), pool("pcie", chip, inside=pcie)]
    made = Ddp()
    for (_, kind), rows in jobs.items():
        name = "with NVLink" if kind.startswith("NVLink") else "without NVLink"
        where = "nvlink" if kind.startswith("NVLink") else "pcie"
        plans: list[tuple[dict[str, list[Scored]], int, int | None, int]] = []
        plans += [(made.blind, 1, None, n) for n in sorted(rows) if n > 1 and 1 in rows]
        plans += [(made.more, 2, 1, n) for n in sorted(rows) if n > 2 and 1 in rows and 2 in rows]
        plans += [(made.back, n, None, 1) for n in sorted(rows) if n == max(rows) and n > 1 and 1 in rows]
        for target, here, before, there in plans:
            row = rows[here]
            columns = {
                Field.CHIP_BUSY: ("graphics_util", 0.01),
                Field.COMPUTE_ACTIVE: ("sm_util", 0.01),
                Field.MEMORY_BANDWIDTH: ("dram_bw_util", 0.01),
                Field.STEP_SECONDS: ("step_ms", 0.001),
            }
            if here > 1:
                columns[Field.EXPOSED_COMMUNICATION] = ("exposed_comm_share", 1.0)
            shown = _shown(row, columns)
            traits = ModelTraits(precision="bf16", parameter_dtype="fp32", parameters=int(row["params"]))
            rate = float(row["samples_per_s"])
            seen = {} if before is None else {Placement(where, before, 1): float(rows[before]["samples_per_s"])}
            question = Question(
                profile(here, rate, shown, traits), Placement(where, here, 1), (Placement(where, there, 1),), seen
            )
            (answer,) = answers(predictor, pools, [question])[0]
            if answer is not None:
                truth = math.log(float(rows[there]["samples_per_s"]))
                linear = math.log(rate * there / here)
                target[name].append(Scored(name, f"{there} chips", *answer, truth, {"linear": linear}))
    return made
