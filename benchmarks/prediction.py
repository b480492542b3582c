"""How far the operator's own predictions are from published measurements.

    PYTHONPATH=operator:. python -m benchmarks.prediction --train DIR --test DIR [--counters FILE] [--ddp FILE]
                                                          [--json FILE] [--quick]

DIR: tables of throughput (cross_accelerator.csv, lambda_train.csv, …); some of them do. Every workload of --test is
left out of what --train teaches; each source is one fleet, whose other workloads are its experience. All goes through
the interface that the operator calls. Error is |predicted/measured − 1|: median and 90th percentile. `in 80%` is the
share of measurements inside the 80% interval. --quick leaves out accelerators that nobody ran, ablations and speed.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap

import numpy as np

from benchmarks.ablations import best_share, drawn, median_of_others, median_scaling, other_sources, repeated_rows
from benchmarks.chip_cases import OURS, chip_cases, choice_lines
from benchmarks.limits import BEST_SHARE, DRAWN, is_whole, limits
from benchmarks.scored import INTERVAL, Bar, Line, Question, Scored, answers, coverage, pool, profile, quantiles, summed
from benchmarks.size_cases import blind, ddp, slices, two_sizes
from rightpool.api.placement import Placement
from rightpool.hardware.catalog import load_catalog
from rightpool.prediction.chip_data import shipped
from rightpool.prediction.chip_model import Comparison
from rightpool.prediction.features import features
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Destinations
from rightpool.prediction.step_model import StepModelPredictor
from tools.fit.scaling import Scaling, gains_late, scalings
from tools.fit.sizes import fitted_sizes
from tools.fit.throughput import Work, published

# What must be reached: design of prediction, and what was asked of this benchmark.
ONE = Bar(0.105, 0.36)
TWO = Bar(0.09, 0.28)
KNOWN = Bar(0.078, 0.27)
UNSEEN = Bar(0.135, 0.39)
FAMILY = Bar(0.04, 0.15)
SIZES = Bar(0.03, 0.10)
BLIND = Bar(0.065, 0.27)
COUNTED = Bar(0.08, 0.22)
DDP_BLIND = Bar(0.12, 0.35)
DDP_MORE = Bar(0.05, 0.12)

MARKS = ("<!-- errors: python -m benchmarks.prediction --docs -->", "<!-- end of errors -->")

JOBS, CANDIDATES, COMPARISONS = 10_000, 40, 5_000


def throughput_lines(train: Path, test: Path, quick: bool) -> list[Line]:
    """The cases of directories with tables of throughput."""
    catalog = load_catalog()
    learnt, asked = published(train), published(test)
    lines: list[Line] = []
    unknown = Counter(asked.unknown)
    if asked.works:
        cases = chip_cases(learnt.works, asked.works, quick)
        lines += summed("another accelerator", cases.one, ONE)
        lines += summed("another accelerator, known to the fleet", cases.known, KNOWN)
        lines += summed("another accelerator, two pools seen", cases.two, TWO)
        lines += summed("another accelerator, same family", cases.family, FAMILY)
        lines += summed("accelerator that the fleet never ran", cases.unseen, UNSEEN)
        lines += summed("another accelerator, precision unknown", cases.blind, split=False)
        lines += _against_known("precision unknown against known", cases.blind, cases.one)
        lines += choice_lines(cases)
        if not quick:
            lines += summed("ablation: median ratio of other jobs", median_of_others(asked.works), judged=False)
            lines += summed("ablation: other sources alone", other_sources(learnt.works, asked.works), judged=False)
            lines += _against_known(BEST_SHARE, best_share(asked.works, cases.one), cases.one, judged=False)
            lines += drawn_lines(asked.works)
    predictor = StepModelPredictor()
    found = scalings(test, catalog, unknown)
    lines += summed("size, two sizes seen, one node", two_sizes(found, False).scored(predictor), SIZES)
    usual = [scaling for scaling in found if not gains_late(scaling)]
    lines += summed("size, two sizes seen, one node, no late gains", two_sizes(usual, False).scored(predictor))
    lines += summed("size, two sizes seen, across nodes", two_sizes(found, True).scored(predictor))
    lines += summed("blind 1 to 8", blind(found).scored(predictor), BLIND)
    lines += summed("blind 1 to 2 and 4", blind(found, (2, 4)).scored(predictor))
    if not quick:
        lines += summed("ablation: rows that are repeated", list(repeated_rows(test, catalog)), judged=False)
        lines += summed("ablation: median scaling of other jobs, 1 to 8", median_scaling(found, 8), judged=False)
        lines += other_sizes(found)
    lines += [Line("left out", name, rows) for name, rows in sorted(unknown.items())]
    return lines


def drawn_lines(works: Sequence[Work]) -> list[Line]:
    """What predictions reach where the model is right: rates are drawn from it, for the same rows."""
    rows = drawn(works, np.random.default_rng(0))
    cases, lines = chip_cases(rows, rows), []
    parts = (
        ("one pool seen", cases.one),
        ("two pools seen", cases.two),
        ("same family", cases.family),
        ("never ran", cases.unseen),
    )
    for name, scored in parts:
        case = f"{DRAWN}, {name}"
        groups = [line for line in coverage(case, scored) if line.ok is not None and "lowest" not in line.source]
        lines += summed(case, scored, split=False, judged=False)[:1]
        if groups:
            reached = sum(bool(line.ok) for line in groups) / len(groups)
            lines.append(Line(f"{case}, groups with 75-90%", "all", len(groups), coverage=reached))
    order = cases.order[OURS]
    lines.append(Line(f"{DRAWN}, pairs in order", "all", len(order), order=sum(order) / len(order)))
    return lines


def other_sizes(found: Sequence[Scaling]) -> list[Line]:
    """Sizes, with what links and bytes do not tell fitted on the other sources alone."""
    parts: dict[str, list[Scored]] = {"two sizes seen, one node": [], "blind 1 to 8": []}
    for source in sorted({scaling.source for scaling in found}):
        mine, others = ([one for one in found if (one.source == source) is own] for own in (True, False))
        if others:
            predictor = StepModelPredictor(sizes=fitted_sizes(others))
            for name, case in zip(parts, (two_sizes(mine, False), blind(mine)), strict=True):
                parts[name] += case.scored(predictor)
    cases = {f"ablation: scales of other sources, {name}": scored for name, scored in parts.items()}
    return [line for case, scored in cases.items() for line in summed(case, scored, judged=False)]


def _against_known(case: str, blind: Sequence[Scored], known: Sequence[Scored], judged: bool = True) -> list[Line]:
    """How much worse predictions are without the precision, by the worse of median and 90th percentile."""
    if not blind or not known:
        return []
    ours, theirs = quantiles([one.error for one in blind]), quantiles([one.error for one in known])
    worse = max(ours[0] / theirs[0], ours[1] / theirs[1])
    bar, ok = ("<= 1.15 x known", worse <= 1.15) if judged else (None, None)
    return [Line(case, f"x {worse:.2f}", len(blind), *ours, bar=bar, ok=ok)]


def counter_lines(path: Path) -> list[Line]:
    """From one slice of a chip with its counters to every other."""
    found = slices(StepModelPredictor(), path)
    return summed("slices, with counters", found.counted, COUNTED) + summed("slices, without counters", found.alone)


def ddp_lines(path: Path) -> list[Line]:
    """Several chips, with and without NVLink."""
    found = ddp(StepModelPredictor(), path, load_catalog())
    lines = summed("ddp, 1 and 2 to 4", [one for some in found.more.values() for one in some], DDP_MORE, split=False)
    for name in sorted({*found.blind, *found.more, *found.back}):
        bar = DDP_BLIND if name.startswith("without") else None
        lines += summed(f"ddp, 1 to 2 and 4, {name}", found.blind[name], bar)
        lines += summed(f"ddp, 1 and 2 to 4, {name}", found.more[name])
        lines += summed(f"ddp, back to 1, {name}", found.back[name])
    return lines


def speed_lines() -> list[Line]:
    """One cycle of a fleet, and an update of the posterior; processor seconds."""
    catalog = load_catalog()
    chips = [chip for chip in catalog.accelerators.values() if "bf16" in chip.peak_flops][:8]
    pools = [pool(chip.key.lower(), chip) for chip in chips]
    places = [Placement(one.name, size, 1) for one in pools for size in (1, 2, 4, 6, 8)][:CANDIDATES]
    predictor = StepModelPredictor()
    questions = [
        Question(profile(size := (1, 2, 4, 8)[number % 4], 100.0), Placement(pools[number % 8].name, size, 1), ())
        for number in range(JOBS)
    ]
    answers(predictor, pools, questions[:10])
    machines = Machines.of(pools)
    one = Destinations.of([(0, place) for place in places], machines)
    rows = Destinations(
        job=np.repeat(np.arange(JOBS), len(places)),
        pool=np.tile(one.pool, JOBS),
        chips=np.tile(one.chips, JOBS),
        per_group=np.tile(one.per_group, JOBS),
        groups=np.tile(one.groups, JOBS),
        current=np.zeros(JOBS * len(places), dtype=np.bool_),
        seen=np.full(JOBS * len(places), np.nan),
        seen_sd=np.full(JOBS * len(places), np.nan),
        other_program=np.zeros(JOBS * len(places), dtype=np.bool_),
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.process_time()
    jobs = features(
        [question.profile for question in questions],
        [question.here for question in questions],
        [question.batch for question in questions],
        machines,
    )
    predictor.predict(jobs, machines, rows)
    cycle = time.process_time() - began
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    draw = np.random.default_rng(0)
    comparisons = []
    for _ in range(COMPARISONS):
        pair = tuple(chips[number] for number in draw.choice(len(chips), 2, replace=False))
        comparisons.append(Comparison(pair, 0, tuple(draw.normal(0.0, 0.5, 2).tolist())))
    model = shipped()
    began = time.process_time()
    model.updated(comparisons)
    update = time.process_time() - began
    name = f"{JOBS} jobs x {len(places)} candidates"
    return [
        Line(f"{name}: {cycle:.2f} s", "cycle", JOBS * len(places), bar="<= 1 s", ok=cycle <= 1.0),
        Line(f"{name}: {grown:.0f} MB", "memory", JOBS * len(places), bar="<= 200 MB", ok=grown <= 200),
        Line(f"posterior update: {update * 1000:.0f} ms", "update", COMPARISONS, bar="<= 50 ms", ok=update <= 0.05),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.prediction", description="How far predictions are from what was measured."
    )
    parser.add_argument("--train", type=Path, help="directory of tables that the model learns from")
    parser.add_argument("--test", type=Path, help="directory of tables to predict; may be the same")
    parser.add_argument("--counters", type=Path, help="slices of one chip with counters")
    parser.add_argument("--ddp", type=Path, help="several chips with and without fast links")
    parser.add_argument("--json", type=Path, help="write the lines there, too")
    parser.add_argument(
        "--quick", action="store_true", help="without accelerators that nobody ran, ablations and speed"
    )
    parser.add_argument("--docs", type=Path, help="write the errors into this page, between its marks")
    given = parser.parse_args(arguments)
    lines: list[Line] = []
    if given.test is not None:
        lines += throughput_lines(given.train or given.test, given.test, given.quick)
    if given.counters is not None:
        lines += counter_lines(given.counters)
    if given.ddp is not None:
        lines += ddp_lines(given.ddp)
    if not lines:
        parser.error("name --test, --counters or --ddp")
    if not given.quick:
        lines += speed_lines()
    print(f"{'case':44} {'source':22} {'pairs':>6}  median    p90")
    for line in lines:
        print(line)
    judged = [line for line in lines if line.ok is not None]
    print(f"{sum(bool(line.ok) for line in judged)} of {len(judged)} bars reached")
    if given.json is not None:
        body = [{key: _plain(value) for key, value in asdict(line).items()} for line in lines]
        given.json.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    if given.docs is not None:
        page = given.docs.read_text(encoding="utf-8")
        head, rest = page.split(MARKS[0])
        given.docs.write_text(f"{head}{MARKS[0]}\n{_table(lines)}{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")
    return 0


def _table(lines: Sequence[Line]) -> str:
    """Markdown of the cases as wholes, and what is not reached, beside the ablation that says why."""
    rows = ["| case | pairs | median | 90th percentile | in 80% | bar | |", "|---|---:|---:|---:|---:|---|---|"]
    for line in lines:
        if INTERVAL in line.case or line.case.startswith("ablation"):
            continue
        whole = is_whole(line)
        if not whole and not line.source.startswith("rule: static"):
            continue
        case = line.case if whole else f"… {line.source}"
        numbers = [line.median, line.p90, line.coverage]
        if line.regret is not None:
            numbers = [line.regret, None, None]
        if line.order is not None:
            numbers = [line.order, None, None]
        cells = ["" if number is None else f"{number:.1%}" for number in numbers]
        verdict = "" if line.ok is None else "reached" if line.ok else "falls short"
        rows.append(f"| {case} | {line.pairs} | {' | '.join(cells)} | {line.bar or ''} | {verdict} |")
    return "\n".join(["", *rows, "", *limits(lines), *_intervals(lines), ""])


def _intervals(lines: Sequence[Line]) -> list[str]:
    """How many sources and accelerators have the coverage that they should, and which are furthest below."""
    judged = [line for line in lines if INTERVAL in line.case and line.bar is not None]
    parts = [line.coverage or 0.0 for line in judged if not line.source.startswith(("lowest", "all"))]
    if not parts:
        return []
    wide, narrow = sum(share > 0.9 for share in parts), sum(share < 0.75 for share in parts)
    text = (
        f"Of {len(parts)} sources and accelerators within these cases, {len(parts) - wide - narrow} have 75% to 90% of "
        f"their measurements in the interval, {wide} more and {narrow} less."
    )
    low = [line for line in judged if line.source.startswith("lowest") and not line.ok]
    if not low:
        return [*wrap(f"{text} None is below 68%.", 120), ""]
    worst = [f"- {line.case.removesuffix(f', {INTERVAL}')}, {line.source[8:]}: {line.coverage:.0%}" for line in low]
    return [*wrap(f"{text} Below 68%:", 120), "", *worst, ""]


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


if __name__ == "__main__":
    sys.exit(main())
