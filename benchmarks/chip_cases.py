"""Another accelerator: the same work on several chips, of which one or two were seen."""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.choices import chosen_chips
from benchmarks.scored import Line, Question, Scored, answers, pool, profile
from rightpool.api.placement import Placement
from rightpool.api.traits import ModelTraits
from rightpool.hardware.accelerator import Accelerator
from rightpool.prediction.chip_data import shipped
from rightpool.prediction.chip_model import ChipModel, Comparison
from rightpool.prediction.precision import peak
from rightpool.prediction.step_model import StepModelPredictor
from tools.fit.evidence import SourcedComparison, learned
from tools.fit.throughput import Work

RULES: dict[str, Callable[[float, float, float], float]] = {
    "stay as it is": lambda flops, bandwidth, power: 0.0,
    "peak FLOP/s": lambda flops, bandwidth, power: flops,
    "bandwidth": lambda flops, bandwidth, power: bandwidth,
    "sqrt(FLOP/s x bandwidth)": lambda flops, bandwidth, power: 0.5 * (flops + bandwidth),
    "static exponents": lambda flops, bandwidth, power: 0.4 * flops + 0.45 * bandwidth + 0.15 * power,
}

OURS = "this model"


def workload(work: Work) -> str:
    """A workload without its precision and sequence length: what is left out together."""
    name = re.sub(r"/(amp|fp16|fp32|tf32|bf16).*$", "", work.name).split("|")[0]
    return re.sub(r"-\d+$", "", name)


@dataclass(slots=True)
class Fleets:
    """Chip models of fleets: what other sources published, then what the fleet's own other workloads did."""

    train: Sequence[Work]
    _priors: dict[tuple[str, str], ChipModel] = field(default_factory=dict)

    def prior(self, source: str, without: str = "") -> ChipModel:
        """Before this source has shown anything. without: a chip that nobody has ever measured."""
        prior = self._priors.get((source, without))
        if prior is None:
            others = [
                SourcedComparison(work.source, one)
                for work in self.train
                if work.source != source and (one := _less(work.comparison, without)) is not None
            ]
            prior = self._priors[source, without] = learned(others, shipped().scales).of_a_fleet()
            prior = self._priors[source, without] = prior.including(
                chip for work in self.train for chip in work.comparison.chips if chip.key != without
            )
        return prior

    def model(self, source: str, left_out: str, without: str = "") -> ChipModel:
        """For a workload of this source."""
        own = [
            one
            for work in self.train
            if work.source == source and workload(work) != left_out
            if (one := _less(work.comparison, without)) is not None
        ]
        return self.prior(source, without).updated(own)


def _less(comparison: Comparison, without: str) -> Comparison | None:
    kept = [number for number, chip in enumerate(comparison.chips) if chip.key != without]
    if len(kept) < 2:
        return None
    if len(kept) == len(comparison.chips):
        return comparison
    chips, logs = comparison.chips, comparison.logs
    return Comparison(tuple(chips[n] for n in kept), comparison.kind, tuple(logs[n] for n in kept))


def _rules(one: Accelerator, other: Accelerator, kind: int) -> dict[str, float]:
    first, second = peak(one, kind), peak(other, kind)
    assert first is not None and second is not None
    flops, bandwidth = math.log(second / first), math.log(other.memory_bandwidth / one.memory_bandwidth)
    both = one.power_watts and other.power_watts
    power = math.log(other.power_watts / one.power_watts) if both else 0.5 * (flops + bandwidth)  # type: ignore[operator]
    return {name: rule(flops, bandwidth, power) for name, rule in RULES.items()}


def _at(key: str) -> Placement:
    return Placement(key.lower(), 1, 1)


def asked(
    model: ChipModel, work: Work, known: bool, seen: Sequence[tuple[str, ...]], targets: Sequence[str] | None = None
) -> Iterator[tuple[tuple[str, ...], str, tuple[float, float]]]:
    """(chips seen, target, log rate and sd), each answered by the operator's own path."""
    chips = {chip.key: chip for chip in work.comparison.chips}
    rates = work.rates
    questions, asked = [], []
    for places in seen:
        first, *others = places
        wanted = [key for key in targets or chips if key not in places]
        traits = ModelTraits(precision=work.precision if known else None)
        made = profile(1, math.exp(rates[first]), traits=traits)
        before = {_at(key): math.exp(rates[key]) for key in others}
        questions.append(Question(made, _at(first), tuple(_at(key) for key in wanted), before))
        asked.append((places, wanted))
    pools = [pool(key.lower(), chip, 1) for key, chip in chips.items()]
    for (places, wanted), found in zip(asked, answers(StepModelPredictor(model), pools, questions), strict=True):
        for key, answer in zip(wanted, found, strict=True):
            if answer is not None:
                yield places, key, answer


@dataclass(slots=True)
class ChipCases:
    """All cases of one run."""

    one: list[Scored] = field(default_factory=list)
    """One pool seen."""
    blind: list[Scored] = field(default_factory=list)
    """The same without the precision."""
    two: list[Scored] = field(default_factory=list)
    """Two pools seen."""
    family: list[Scored] = field(default_factory=list)
    """One pool seen, of the same micro-architecture."""
    unseen: list[Scored] = field(default_factory=list)
    """One pool seen; the other accelerator ran for nobody."""
    known: list[Scored] = field(default_factory=list)
    """One pool seen; both accelerators ran other jobs of this fleet."""
    choices: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Regret of choosing by samples a dollar, by rule."""
    order: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    """Whether pairs of pools were put in the right order, by rule."""


def chip_cases(train: Sequence[Work], test: Sequence[Work], quick: bool = False) -> ChipCases:
    """Each workload of `test`, left out of `train`. quick: without the accelerators that nobody ran."""
    fleets, cases = Fleets(train), ChipCases()
    for work in test:
        chips = {chip.key: chip for chip in work.comparison.chips}
        kind, rates = work.comparison.kind, work.rates
        model = fleets.model(work.source, workload(work))
        ran = {
            chip.key
            for other in train
            if other.source == work.source and workload(other) != workload(work)
            for chip in other.comparison.chips
        }
        singles = [(key,) for key in chips]
        ratios: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        for places, key, (log, sd) in asked(model, work, True, singles):
            here = places[0]
            rules = _rules(chips[here], chips[key], kind)
            moved = {name: rates[here] + value for name, value in rules.items()}
            one = Scored(work.source, key, log, sd, rates[key], moved)
            cases.one.append(one)
            if chips[here].arch == chips[key].arch:
                cases.family.append(one)
            if here in ran and key in ran:
                cases.known.append(one)
            for name, value in {OURS: log - rates[here], **rules}.items():
                ratios[name][here][key] = value
        for _, key, (log, sd) in asked(model, work, False, singles):
            cases.blind.append(Scored(work.source, key, log, sd, rates[key]))
        for _, key, (log, sd) in asked(model, work, True, list(itertools.combinations(chips, 2))):
            cases.two.append(Scored(work.source, key, log, sd, rates[key]))
        _chosen(cases, work, ratios, chosen_chips(StepModelPredictor(model), work))
        if not quick:
            for key in chips:
                never = fleets.model(work.source, workload(work), key)
                for _, _, (log, sd) in asked(never, work, True, [one for one in singles if one[0] != key], [key]):
                    cases.unseen.append(Scored(work.source, key, log, sd, rates[key]))
    return cases


def _chosen(cases: ChipCases, work: Work, ratios: dict[str, dict[str, dict[str, float]]], ours: dict[str, str]) -> None:
    """ours: the operator's choice by the chip that the work runs on, its gates included; rules have none."""
    prices = {chip.key: price for chip in work.comparison.chips if (price := chip.list_price.on_demand) is not None}
    rates = work.rates
    if len(prices) < 2:
        return
    worth = {key: rates[key] - math.log(price) for key, price in prices.items()}
    best = max(worth.values())
    for name, by_source in ratios.items():
        for here in prices:
            ahead = {key: by_source[here].get(key, 0.0) - math.log(price) for key, price in prices.items()}
            if name == OURS:
                chosen = ours[here]
            else:
                chosen = here if name.startswith("stay") else max(ahead, key=lambda key: (ahead[key], key))
            cases.choices[name].append(1.0 - math.exp(worth[chosen] - best))
            cases.order[name] += in_order(worth, ahead)


def in_order(worth: Mapping[str, float], ahead: Mapping[str, float]) -> list[bool]:
    """Whether pairs of chips are in the right order, by logarithms of samples a dollar; pairs within 2% do not count.

    worth: what was measured. ahead: what was predicted, up to a constant.
    """
    pairs = [pair for pair in itertools.combinations(worth, 2) if abs(worth[pair[0]] - worth[pair[1]]) > 0.02]
    return [(ahead[one] > ahead[other]) == (worth[one] > worth[other]) for one, other in pairs]


def choice_lines(cases: ChipCases) -> list[Line]:
    """Regret of choosing the pool with the best samples a dollar, and the share of pairs in the right order."""
    lines = []
    for name, regrets in cases.choices.items():
        mean, order = sum(regrets) / len(regrets), cases.order[name]
        ours = name == OURS
        label = "all" if ours else f"rule: {name}"
        bar, ok = ("<= 3%", mean <= 0.03) if ours else (None, None)
        lines.append(Line("choice of pool, regret, gates included", label, len(regrets), regret=mean, bar=bar, ok=ok))
        if order:
            share = sum(order) / len(order)
            bar, ok = (">= 94%", share >= 0.94) if ours else (None, None)
            lines.append(Line("choice of pool, pairs in order", label, len(order), order=share, bar=bar, ok=ok))
    return lines
