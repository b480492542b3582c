"""What limits predictions: the same pairs with less, or with what no model can know."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.chip_cases import Fleets, asked, workload
from benchmarks.scored import Scored, quantiles
from rightpool.hardware.catalog import Catalog
from rightpool.prediction.chip_data import shipped
from rightpool.prediction.spread import NU
from tools.fit.scaling import Scaling, rates_by_size
from tools.fit.throughput import Work


def median_of_others(works: Sequence[Work]) -> list[Scored]:
    """Between two chips, the median ratio of all other workloads of the same source and precision: no model at all."""
    ratios: dict[tuple[str, str, str, str], list[tuple[str, float]]] = defaultdict(list)
    for work in works:
        for here, there in itertools.permutations(work.rates, 2):
            ratio = work.rates[there] - work.rates[here]
            ratios[work.source, work.precision, here, there].append((workload(work), ratio))
    found = []
    for (source, _, _, there), known in ratios.items():
        for name, ratio in known:
            others = [value for other, value in known if other != name]
            if others:
                found.append(Scored(source, there, statistics.median(others), math.nan, ratio))
    return found


def median_scaling(found: Sequence[Scaling], size: int) -> list[Scored]:
    """From one chip to this size, the median ratio of all other jobs of the same source on the same chip."""
    ratios: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for one in found:
        if 1 in one.rates and size in one.rates:
            ratios[one.source, one.chip.key].append((math.log(one.rates[1]), math.log(one.rates[size])))
    scored = []
    for (source, key), known in ratios.items():
        for number, (before, after) in enumerate(known):
            others = [there - here for place, (here, there) in enumerate(known) if place != number]
            if others:
                scored.append(Scored(source, key, before + statistics.median(others), math.nan, after))
    return scored


def drawn(works: Sequence[Work], draw: np.random.Generator) -> list[Work]:
    """The same workloads of the same sources on the same chips, with rates as the model takes them to be: what is
    common to all, what is a source's own, and what is a job's, with its tails."""
    model = shipped().including(chip for work in works for chip in work.comparison.chips)
    own = model.deviations()
    common = draw.multivariate_normal(model.mean, model.covariance - np.diag(own), method="eigh")
    sources = {}
    for name in sorted({work.source for work in works}):
        spread = math.exp(draw.normal(0.0, model.scales.fleets))
        sources[name] = (common + draw.normal(0.0, np.sqrt(own)), spread)
    found = []
    for work in works:
        chips, kind = work.comparison.chips, work.comparison.kind
        fleet, spread = sources[work.source]
        tail = spread * math.sqrt(NU / draw.chisquare(NU))
        job = draw.multivariate_normal(np.zeros(len(chips)), model.of_a_usual_job(chips, kind), method="eigh")
        logs = model.design(chips, kind) @ fleet + tail * job
        found.append(replace(work, comparison=replace(work.comparison, logs=tuple(logs.tolist()))))
    return found


def other_sources(train: Sequence[Work], test: Sequence[Work]) -> list[Scored]:
    """From what other sources published alone, as a fleet begins."""
    fleets, found = Fleets(train), []
    for work in test:
        model = fleets.prior(work.source)
        for _, key, (log, sd) in asked(model, work, True, [(key,) for key in work.rates]):
            found.append(Scored(work.source, key, log, sd, work.rates[key]))
    return found


def best_share(works: Sequence[Work], known: Sequence[Scored]) -> list[Scored]:
    """The share of half precision among jobs of unknown precision that is best for these very rows, which nobody can
    know before, and what it gives: the rates that half and single precision would have, mixed with it."""
    fleets, pairs = Fleets(works), []
    for work in works:
        model, seen = fleets.model(work.source, workload(work)), [(key,) for key in work.rates]
        half, single = (
            {(place, key): log for place, key, (log, _) in asked(model, replace(work, precision=precision), True, seen)}
            for precision in ("fp16", "fp32")
        )
        for (place, key), log in half.items():
            pairs.append((work, key, log, single.get((place, key), log)))
    median, p90 = quantiles([one.error for one in known])

    def mixed(share: float) -> list[Scored]:
        return [
            Scored(work.source, key, share * half + (1.0 - share) * single, math.nan, work.rates[key])
            for work, key, half, single in pairs
        ]

    def worse(share: float) -> float:
        ours = quantiles([one.error for one in mixed(share)])
        return max(ours[0] / median, ours[1] / p90)

    return mixed(min((number / 20.0 for number in range(21)), key=worse))


def repeated_rows(directory: Path, catalog: Catalog) -> Iterator[Scored]:
    """Rows that differ in nothing that the tables say: one of them against the median of the rest."""
    for (source, chip, *_), sizes in rates_by_size(directory, catalog, Counter())[0].items():
        for rates in sizes.values():
            for number, rate in enumerate(rates):
                others = rates[:number] + rates[number + 1 :]
                if others:
                    yield Scored(source, chip, math.log(statistics.median(others)), math.nan, math.log(rate))
