"""Other sizes, other links, slices of one chip with counters."""

from __future__ import annotations

import csv
import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.scored import Question, Scored, answers, pool, profile
from rightpool.api.placement import Placement
from rightpool.api.pool import LinkKind
from rightpool.hardware.accelerator import Accelerator, Link, Price
from rightpool.hardware.catalog import Catalog
from rightpool.hardware.pool import Pool
from rightpool.hardware.vendors.nvidia import NVIDIA
from rightpool.prediction.predictor import Predictor
from rightpool.profiles.sample import Field
from rightpool.profiles.traits import ModelTraits
from tools.fit.throughput import measured, named, number

Row = dict[str, str]


def table(path: Path) -> list[Row]:
    """A CSV file with a header; empty where it is not there."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _measured(path: Path, *columns: str) -> list[Row]:
    """Rows of counters that have positive numbers in these columns."""
    return [row for row in table(path) if all(measured(row[column]) is not None for column in columns)]


def _shown(row: Row, columns: dict[Field, tuple[str, float]]) -> dict[Field, float]:
    """Counters of a row, by the column and the factor of each; those without a number are absent."""
    found = {name: number(row[column]) for name, (column, _) in columns.items()}
    return {name: value * columns[name][1] for name, value in found.items() if value is not None}


@dataclass(slots=True)
class Scaling:
    """Throughput of the same work by the number of chips, the batch of each chip the same."""

    source: str
    chip: Accelerator
    rates: dict[int, float]


LATE_GAIN = 0.15


def gains_late(scaling: Scaling) -> bool:
    """Whether a later doubling within a node gains more than the one before it, by more than LATE_GAIN in the exponent
    of the chips: sharing costs do not fall, so one of the rates is of something else, or off."""
    sizes = [size for size in scaling.rates if size <= 8]
    rates = scaling.rates
    slopes = [math.log(rates[b] / rates[a]) / math.log(b / a) for a, b in itertools.pairwise(sizes)]
    return any(later - earlier > LATE_GAIN for earlier, later in itertools.pairwise(slopes))


def rates_by_size(
    directory: Path, catalog: Catalog, unknown: Counter[str]
) -> tuple[dict[tuple[str, ...], dict[int, list[float]]], dict[str, Accelerator]]:
    """Rates by (source, chip, what else tells jobs apart) and by number of chips, and the chips by key. What the
    catalog lacks is counted."""
    found: dict[tuple[str, ...], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    chips: dict[str, Accelerator] = {}
    for source, key, gpu, size, text in _rows(directory):
        chip, rate, count = named(catalog, gpu), measured(text), int(size) if size.isdecimal() else 0
        if chip is None:
            unknown[f"{gpu} is not in the catalog"] += 1
        elif rate is None or count < 1:
            unknown[f"no number for the rate or size in {source}"] += 1
        else:
            chips[chip.key] = chip
            found[source, chip.key, *key][count].append(rate)
    return found, chips


def scalings(directory: Path, catalog: Catalog, unknown: Counter[str]) -> list[Scaling]:
    """All that the files of the directory have at several sizes."""
    found, chips = rates_by_size(directory, catalog, unknown)
    made = []
    for (source, chip_key, *_), sizes in found.items():
        if len(sizes) > 1:
            rates = {count: statistics.median(rates) for count, rates in sorted(sizes.items())}
            made.append(Scaling(source, chips[chip_key], rates))
    return made


def _rows(directory: Path) -> Iterator[tuple[str, tuple[str, ...], str, str, str]]:
    for row in table(directory / "lambda_train.csv"):
        # Their eight-chip rows of this model are super-linear: a measuring error of the source.
        if row["mode"] == "train" and not row["model"].startswith("bert_base"):
            key = (row["stack"], row["model"], row["precision"])
            yield "lambda", key, row["gpu"], row["count"], row["throughput"]
    for row in table(directory / "nvidia_dle.csv"):
        if row["section"] == "train" and row["throughput"] and row["count"].isdigit():
            columns = ("model", "task", "config", "batch_per_gpu", "precision", "column", "src")
            yield "dle", tuple(row[name] for name in columns), row["gpu"], row["count"], row["throughput"]
    for row in table(directory / "mpt_llmfoundry.csv"):
        parts = ("model", "seq_len", "micro_batch", "precision", "sharding", "act_ckpt")
        yield "mpt", tuple(row[part] for part in parts), row["gpu"], row["count"], row["tokens_per_s"]


def _placed(chip: Accelerator, count: int) -> Placement:
    """Eight chips a pod; the slices of a TPU are what they are."""
    pods = max(1, count // 8)
    return Placement(chip.key.lower(), count, pods)


def two_sizes(predictor: Predictor, found: Sequence[Scaling], across: bool) -> list[Scored]:
    """Two sizes seen, any third, within one node (or across); beside linear growth from the nearest."""
    questions, truths = [], []
    pools = {scaling.chip.key: pool(scaling.chip.key.lower(), scaling.chip) for scaling in found}
    for scaling in found:
        for here, before in itertools.permutations(scaling.rates, 2):
            if here < before:
                continue
            targets = [n for n in scaling.rates if n not in (here, before) and (max(n, here) > 8) is across]
            for target in targets:
                seen = {_placed(scaling.chip, before): scaling.rates[before]}
                questions.append(
                    Question(
                        profile(here, scaling.rates[here]),
                        _placed(scaling.chip, here),
                        (_placed(scaling.chip, target),),
                        seen,
                    )
                )
                truths.append((scaling, here, target))
    return list(_scored(predictor, pools.values(), questions, truths))


def blind(predictor: Predictor, found: Sequence[Scaling], sizes: Sequence[int] = (8,)) -> list[Scored]:
    """From one chip to others of a node; beside linear growth."""
    questions, truths = [], []
    pools = {scaling.chip.key: pool(scaling.chip.key.lower(), scaling.chip) for scaling in found}
    for scaling in found:
        for target in sizes:
            if 1 in scaling.rates and target in scaling.rates:
                made = profile(1, scaling.rates[1])
                questions.append(Question(made, _placed(scaling.chip, 1), (_placed(scaling.chip, target),)))
                truths.append((scaling, 1, target))
    return list(_scored(predictor, pools.values(), questions, truths))


def _scored(
    predictor: Predictor,
    pools: Iterable[Pool],
    questions: Sequence[Question],
    truths: Sequence[tuple[Scaling, int, int]],
) -> Iterator[Scored]:
    found = answers(predictor, list(pools), questions)
    for (scaling, here, target), (answer,) in zip(truths, found, strict=True):
        if answer is not None:
            linear = math.log(scaling.rates[here] * target / here)
            truth = math.log(scaling.rates[target])
            key = f"{scaling.chip.key} {scaling.chip.intra_link.kind.value}"
            yield Scored(scaling.source, key, *answer, truth, {"linear": linear})


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
