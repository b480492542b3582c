"""How far predictions are from published measurements.

    RIGHTPOOL_SHARED=<directory with data/> PYTHONPATH=operator python -m benchmarks.prediction

Rows: another accelerator by three rules; the same with counters, on slices of one chip; one to eight chips without
having seen any communication; more chips and slower links after it has been seen. Error is |predicted/measured − 1|;
`in 80%` is the share of measurements inside the 80% interval (there should be 78–90%).
"""

import csv
import itertools
import math
import os
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rightpool.api.choices import Batch
from rightpool.hardware.accelerator import Accelerator, Link, LinkKind, Price, Vendor
from rightpool.hardware.placement import Placement
from rightpool.hardware.pool import Pool
from rightpool.prediction.estimate import Estimate
from rightpool.prediction.predict import predict
from rightpool.prediction.transfer import static_rule
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey

Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Case:
    """A prediction and what was measured."""

    group: str
    predicted: Estimate
    measured: float

    @property
    def error(self) -> float:
        """Relative error."""
        return abs(self.predicted.median / self.measured - 1.0)

    @property
    def inside(self) -> bool:
        """Whether the measurement is in the 80% interval."""
        return self.predicted.low <= self.measured <= self.predicted.high


def rows(path: Path) -> list[Row]:
    """A CSV file with a header."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def first_number(cell: str | None) -> float | None:
    """The number that a cell of the catalog begins with, 35-70* being 35; None where there is none."""
    match = re.match(r"~?(\d+(\.\d+)?)", cell or "")
    return float(match[1]) if match else None


def accelerators(data: Path) -> dict[str, dict[str, Accelerator]]:
    """Chips by name and class of peak rate, fp16 or tf32; where a chip has no tf32, its fp32 stands for it."""
    chips: dict[str, dict[str, Accelerator]] = {}
    link = Link(LinkKind.PCIE, 20e9)
    for row in rows(data / "catalog" / "hardware_catalog.csv"):
        half = first_number(row["fp16_tflops"]) or first_number(row["bf16_tflops"])
        single = first_number(row["tf32_tflops"]) or first_number(row["fp32_tflops"])
        bandwidth = first_number(row["hbm_gbps"])
        for kind, rate in (("fp16", half), ("tf32", single)):
            if rate is not None and bandwidth is not None:
                chips.setdefault(row["chip"], {})[kind] = Accelerator(
                    row["chip"],
                    Vendor.GOOGLE if row["chip"].startswith("TPU") else Vendor.NVIDIA,
                    row["arch"],
                    {kind: rate * 1e12},
                    int((first_number(row["hbm_gb"]) or 0) * 1e9),
                    bandwidth * 1e9,
                    first_number(row["tdp_w"]),
                    link,
                    link,
                    Price(),
                    True,
                )
    return chips


def measured_pairs(data: Path) -> Iterator[tuple[str, Accelerator, Accelerator, float]]:
    """(source, one chip, another, how much faster the other was) over all workloads."""
    chips = accelerators(data)
    seen: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows(data / "throughput" / "cross_accelerator.csv"):
        if row["pc"] in chips.get(row["gpu"], {}):
            seen[row["ds"], row["wl"], row["pc"]][row["gpu"]].append(float(row["thr"]))
    for (source, _, kind), rates in seen.items():
        for one, other in itertools.permutations(sorted(rates), 2):
            ratio = statistics.median(rates[other]) / statistics.median(rates[one])
            yield source, chips[one][kind], chips[other][kind], ratio


def other_accelerator(data: Path) -> dict[str, list[Case]]:
    """Three rules between chips, without counters."""
    cases: dict[str, list[Case]] = defaultdict(list)
    for source, one, other, ratio in measured_pairs(data):
        kind = next(iter(one.peak_flops))
        flops = other.peak_flops[kind] / one.peak_flops[kind]
        bandwidth = other.memory_bandwidth / one.memory_bandwidth
        speed = static_rule(one, other, 0.5, 0.25)
        assert speed is not None
        cases["peak FLOP/s"].append(Case(source, Estimate(flops, 0.0), ratio))
        cases["sqrt(FLOP/s × bandwidth)"].append(Case(source, Estimate(math.sqrt(flops * bandwidth), 0.0), ratio))
        estimate = Estimate(math.exp(speed.log), speed.sd)
        cases["static rule"].append(Case(source, estimate, ratio))
        cases[f"static rule, {'same' if one.arch == other.arch else 'other'} architecture"].append(
            Case(source, estimate, ratio)
        )
    return cases


def profile(chips: int, rate: float, readings: dict[Field, float]) -> Profile:
    """A complete profile."""
    made = {field: Reading(value, value, value, Quality.MEASURED) for field, value in readings.items()}
    made[Field.SAMPLES_PER_SECOND] = Reading(rate, rate, rate, Quality.MEASURED)
    return Profile(RevisionKey("b", "b", 1), chips, Steadiness.STEADY, 300.0, 1.0, 0.0, 1, 1, made)


def pool(name: str, chip: Accelerator, link: float = 20e9, between: float = 5e9) -> Pool:
    """A pool without a price."""
    links = Link(LinkKind.PCIE, link), Link(LinkKind.ETHERNET, between)
    return Pool(name, chip, 8, "nvidia.com/gpu", {}, *links, Price(), 64, 64)


def expect(made: Profile, source: tuple[Placement, Pool], target: tuple[Placement, Pool]) -> Estimate:
    """The prediction, which must be possible."""
    result = predict(made, source, target, batch=Batch.PER_CHIP)
    assert isinstance(result, Estimate), result
    return result


def slices(data: Path) -> dict[str, list[Case]]:
    """Slices of one chip with counters: with all of them, and with throughput alone."""
    jobs: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in rows(data / "counters" / "h200_slices.csv"):
        jobs[row["workload"]][int(row["sms"])] = row
    whole = max(sms for job in jobs.values() for sms in job)
    cases: dict[str, list[Case]] = defaultdict(list)
    link = Link(LinkKind.NVLINK, 300e9)

    def chip(row: Row) -> Accelerator:
        rates = {"bf16": float(row["measured_bf16_tflops"]) * 1e12}
        bandwidth = float(row["measured_copy_gbps"]) * 1e9
        return Accelerator(row["slice"], Vendor.NVIDIA, "hopper", rates, 1, bandwidth, None, link, link, Price(), True)

    for job in jobs.values():
        for one, other in itertools.permutations(sorted(job), 2):
            here, there = job[one], job[other]
            # Counters are shares of the whole chip; the memory's share is of what the slice can move.
            shown = {
                Field.CHIP_BUSY: float(here["graphics_util"]) / 100,
                Field.MATRIX_ACTIVE: float(here["tensor_util"]) / 100 * whole / one,
                Field.MEMORY_BANDWIDTH: float(here["dram_bw_util"])
                / 100
                * float(job[max(job)]["measured_copy_gbps"])
                / float(here["measured_copy_gbps"]),
            }
            for name, readings in (("slices, all counters", shown), ("slices, throughput alone", {})):
                made = profile(1, float(here["samples_per_s"]), readings)
                estimate = expect(
                    made,
                    (Placement("here", 1, 1), pool("here", chip(here))),
                    (Placement("there", 1, 1), pool("there", chip(there))),
                )
                cases[name].append(Case("h200", estimate, float(there["samples_per_s"])))
    return cases


def blind_sizes(data: Path) -> dict[str, list[Case]]:
    """One chip seen, eight predicted, against eight times one."""
    jobs: dict[tuple[str, ...], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows(data / "throughput" / "lambda_train.csv"):
        if row["mode"] != "train" or row["model"].startswith("bert_base"):
            continue  # their eight-chip rows are super-linear: a measuring error of the source
        jobs[row["stack"], row["model"], row["precision"], row["gpu"]][int(row["count"])].append(
            float(row["throughput"])
        )
    link = Link(LinkKind.PCIE, 20e9)
    chip = Accelerator("x", Vendor.NVIDIA, "x", {"fp16": 1e14}, 1, 1e12, None, link, link, Price(), True)
    here = pool("x", chip)
    cases: dict[str, list[Case]] = defaultdict(list)
    for sizes in jobs.values():
        if 1 in sizes and 8 in sizes:
            one, eight = statistics.median(sizes[1]), statistics.median(sizes[8])
            cases["1 → 8, linear"].append(Case("lambda", Estimate(8 * one, 0.0), eight))
            estimate = expect(profile(1, one, {}), (Placement("x", 1, 1), here), (Placement("x", 8, 1), here))
            cases["1 → 8, blind"].append(Case("lambda", estimate, eight))
    return cases


def links(data: Path) -> dict[str, list[Case]]:
    """Two chips with their communication seen: four of them, one of them, and the same over slower links."""
    # 4-byte gradients of vgg16 over the communication time in the trace of four chips: 830 MB in 4.3 and in 33 ms.
    bandwidth = {"NVLink": 190e9, "PCIe-SHM": 25e9}
    measured: dict[tuple[str, str, int], Row] = {
        (row["workload"], row["link"], int(row["gpus"])): row for row in rows(data / "counters" / "h200_ddp.csv")
    }
    link = Link(LinkKind.NVLINK, 300e9)
    chip = Accelerator("h200", Vendor.NVIDIA, "hopper", {"bf16": 1e15}, 1, 4.8e12, 700.0, link, link, Price(), True)
    pools = {name: pool(name, chip, rate) for name, rate in bandwidth.items()}
    cases: dict[str, list[Case]] = defaultdict(list)
    for (workload, kind, chips), row in measured.items():
        if chips == 1:
            continue
        shown = {
            Field.CHIP_BUSY: float(row["graphics_util"]) / 100,
            Field.EXPOSED_COMMUNICATION: float(row["exposed_comm_share"]),
        }
        made = profile(chips, float(row["samples_per_s"]), shown)
        for other, to in itertools.product(bandwidth, (1, 2, 4)):
            if (other, to) == (kind, chips) or (workload, other, to) not in measured or (to == 1 and other != kind):
                continue
            estimate = expect(made, (Placement(kind, chips, 1), pools[kind]), (Placement(other, to, 1), pools[other]))
            if other != kind:
                name = "other link" if to == chips else "other link and size"
            else:
                name = "down to 1 chip" if to == 1 else "2 ↔ 4 chips"
            cases[f"seen: {name}"].append(Case("h200", estimate, float(measured[workload, other, to]["samples_per_s"])))
    return cases


def told(name: str, cases: Iterable[Case]) -> str:
    """One line of the table."""
    found = list(cases)
    errors = sorted(case.error for case in found)
    high = errors[min(int(0.9 * len(errors)), len(errors) - 1)]
    line = f"{name:38} {len(found):5}  median {statistics.median(errors):6.1%}  p90 {high:6.1%}"
    if any(case.predicted.sd > 0 for case in found):
        line += f"  in 80%: {sum(case.inside for case in found) / len(found):4.0%}"
    return line


def main() -> None:
    """Print the table."""
    data = Path(os.environ["RIGHTPOOL_SHARED"]) / "data"
    for table in (other_accelerator(data), slices(data), blind_sizes(data), links(data)):
        for name, cases in table.items():
            print(told(name, cases))
            groups = sorted({case.group for case in cases})
            if len(groups) > 1 and name == "static rule":
                for group in groups:
                    print("  " + told(group, [case for case in cases if case.group == group])[:38].ljust(36), end="")
                    print(told(group, [case for case in cases if case.group == group])[38:])


if __name__ == "__main__":
    main()
