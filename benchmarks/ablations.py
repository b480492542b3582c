"""What limits predictions: the same pairs with less, or with what no model can know."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.chip_cases import Fleets, asked, workload
from benchmarks.scored import Scored
from benchmarks.size_cases import rates_by_size
from rightpool.hardware.catalog import Catalog
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


def other_sources(train: Sequence[Work], test: Sequence[Work]) -> list[Scored]:
    """From what other sources published alone, as a fleet begins."""
    fleets, found = Fleets(train), []
    for work in test:
        model = fleets.prior(work.source)
        for _, key, (log, sd) in asked(model, work, True, [(key,) for key in work.rates]):
            found.append(Scored(work.source, key, log, sd, work.rates[key]))
    return found


def repeated_rows(directory: Path, catalog: Catalog) -> Iterator[Scored]:
    """Rows that differ in nothing that the tables say: one of them against the median of the rest."""
    for (source, chip, *_), sizes in rates_by_size(directory, catalog, Counter())[0].items():
        for rates in sizes.values():
            for number, rate in enumerate(rates):
                others = rates[:number] + rates[number + 1 :]
                if others:
                    yield Scored(source, chip, math.log(statistics.median(others)), math.nan, math.log(rate))
