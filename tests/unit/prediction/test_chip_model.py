"""The chip model: what it learns, that it never gets worse for it, and that the fit's likelihood is the reference's."""

from __future__ import annotations

import math
from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scored import Question, answers, pool, profile
from rightpool.api.estimate import Z80
from rightpool.api.placement import Placement
from rightpool.api.traits import ModelTraits
from rightpool.hardware.accelerator import Accelerator
from rightpool.hardware.catalog import load_catalog
from rightpool.prediction import chip_model
from rightpool.prediction.chip_data import read, shipped, write
from rightpool.prediction.chip_model import ChipModel, Comparison
from rightpool.prediction.columns import Floats
from rightpool.prediction.precision import HALF, PLAIN, SINGLE, UNKNOWN_PRECISION, class_of, lacks, observed_class
from rightpool.prediction.scales import Scales
from rightpool.prediction.spread import Misfit, fleet_spread
from rightpool.prediction.step_model import StepModelPredictor
from rightpool.prediction.transfer import Transfer, job_speeds
from rightpool.profiles.sample import Field
from tools.fit import evidence as published_evidence
from tools.fit.evidence import Evidence, SourcedComparison, Spreads, covariance, learned

CATALOG = load_catalog()
CHIPS = [CATALOG.get(key) for key in ("A100-SXM4-80GB", "H100-SXM5-80GB", "L4-24GB", "A10G-24GB", "T4-16GB")]
SCALES = shipped().scales


def fleet(draw: np.random.Generator, truth: dict[str, float], count: int) -> list[Comparison]:
    """Jobs that ran on two kinds of chips, whose speeds are off from what data sheets say by `truth`."""
    model = ChipModel.prior(SCALES).including(CHIPS)
    lines = model.design(CHIPS, HALF) @ model.mean
    made = []
    for _ in range(count):
        pair = draw.choice(len(CHIPS), 2, replace=False)
        logs = [float(lines[n] + truth[CHIPS[n].key] + draw.normal(0.0, 0.1)) for n in pair]
        made.append(Comparison(tuple(CHIPS[n] for n in pair), HALF, tuple(logs)))
    return made


def error(model: ChipModel, truth: dict[str, float]) -> float:
    """Mean absolute error of the log over all pairs."""
    prior = ChipModel.prior(SCALES).including(CHIPS)
    lines = prior.design(CHIPS, HALF) @ prior.mean + np.array([truth[chip.key] for chip in CHIPS])
    predicted = Transfer.among(CHIPS, model).log[HALF]
    return float(np.abs(predicted - (lines[np.newaxis, :] - lines[:, np.newaxis])).mean())


def test_a_fleet_predicts_better_with_use() -> None:
    errors: dict[int, list[float]] = {0: [], 10: [], 200: []}
    for seed in range(8):
        draw = np.random.default_rng(seed)
        truth = {chip.key: float(draw.normal(0.0, 0.25)) for chip in CHIPS}
        for count, found in errors.items():
            found.append(error(shipped().updated(fleet(draw, truth, count)), truth))
    mean = {count: float(np.mean(found)) for count, found in errors.items()}
    assert mean[200] < 0.6 * mean[10] < 0.6 * mean[0]
    assert all(many < max(none, 0.1) for none, many in zip(errors[0], errors[200], strict=True))


def test_a_doubtful_comparison_counts_for_less() -> None:
    pair = (CHIPS[0], CHIPS[2])
    sure, unsure = (Comparison(pair, HALF, (0.0, 1.0), sd) for sd in (0.0, 0.5))
    before, much, little = (
        Transfer.among(pair, shipped().updated(given)).log[HALF, 0, 1] for given in ((), (sure,), (unsure,))
    )
    assert before < little < much


def test_learning_only_narrows() -> None:
    before = Transfer.among(CHIPS, shipped()).variances
    one = Comparison((CHIPS[0], CHIPS[1]), HALF, (0.0, 0.6))
    after = Transfer.among(CHIPS, shipped().updated([one] * 20)).variances
    assert (after[:, :3] <= before[:, :3] + 1e-9).all()


@given(st.floats(-1.5, 1.5), st.floats(1.0, 10.0))
def test_what_was_seen_never_makes_a_better_chip_worse(seen: float, factor: float) -> None:
    slow = CHIPS[0]
    fast = replace(slow, key="fast", peak_flops={k: v * factor for k, v in slow.peak_flops.items()})
    wide = replace(slow, key="wide", memory_bandwidth=slow.memory_bandwidth * factor)
    base = replace(slow, key="base")
    one = Comparison((slow, CHIPS[1]), HALF, (0.0, seen))
    logs, covariance = job_speeds(shipped(), one, [base, fast, wide])
    assert logs[1] >= logs[0] - 1e-6 and logs[2] >= logs[0] - 1e-6
    assert (np.diag(covariance) > 0.0).all()


def test_the_shipped_model_is_what_it_is_written_as() -> None:
    model = learned(
        [
            SourcedComparison("a", one)
            for one in fleet(np.random.default_rng(1), dict.fromkeys((c.key for c in CHIPS), 0.1), 30)
        ],
        SCALES,
    )
    again = read(write(model, {"made": "in a test"}))
    assert again.names == model.names
    assert np.allclose(again.mean, model.mean, atol=1e-5)
    assert np.allclose(again.covariance, model.covariance, atol=1e-5)
    assert (np.linalg.eigvalsh(shipped().covariance) > -1e-4).all()


def test_updating_is_what_conditioning_all_at_once_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The information form, group by group, against the textbook formula over all rates, after as many turns."""
    monkeypatch.setattr(published_evidence, "_TURNS", chip_model._TURNS - 1)
    made = fleet(np.random.default_rng(3), dict.fromkeys((chip.key for chip in CHIPS), 0.0), 12)
    scales = replace(SCALES, fleet_exponents=1e-9, fleet_chip=1e-9)
    model = ChipModel.prior(scales).updated(made)
    evidence = Evidence.of([SourcedComparison("one", one) for one in made], scales)
    whole = learned([SourcedComparison("one", one) for one in made], scales)
    assert model.spread == pytest.approx(Spreads.of(evidence, scales).sources["one"], abs=0.02)
    order = [whole.index[name] for name in model.names]
    assert np.allclose(model.mean, whole.mean[order], atol=1e-4)
    assert np.allclose(model.covariance, whole.covariance[np.ix_(order, order)], atol=1e-4)


@pytest.mark.parametrize("far", [-1.2, 1.2])
def test_a_job_that_is_far_off_counts_for_little(far: float) -> None:
    """A straggler, a neighbour, a wrong reading: what ten other jobs of the fleet did is believed."""
    truth = dict.fromkeys((chip.key for chip in CHIPS), 0.0)
    usual = [one for one in fleet(np.random.default_rng(5), truth, 200) if one.chips == (CHIPS[0], CHIPS[1])][:10]
    odd = replace(usual[0], logs=(usual[0].logs[0], usual[0].logs[1] + far))
    prior = ChipModel.prior(SCALES)

    def speed(model: ChipModel) -> float:
        return float(Transfer.among(CHIPS, model).log[HALF, 0, 1])

    clean, moved = speed(prior.updated(usual)), speed(prior.updated([*usual, odd]))
    assert abs(moved - clean) < 0.25 * abs(far) / (len(usual) + 1)


def jobs_that_differ(draw: np.random.Generator, spread: float, count: int) -> list[Comparison]:
    """Jobs of a fleet on two kinds of chips each, with what is their own drawn from a t at this spread."""
    model = shipped().including(CHIPS)
    made = []
    for _ in range(count):
        pair = tuple(CHIPS[n] for n in draw.choice(len(CHIPS), 2, replace=False))
        rows, own = model.design(pair, HALF), model.of_a_usual_job(pair, HALF)
        tail = math.sqrt(4.0 / draw.chisquare(4.0))
        made.append(
            Comparison(pair, HALF, tuple(rows @ model.mean + spread * tail * draw.multivariate_normal([0, 0], own)))
        )
    return made


def covered(model: ChipModel, jobs: list[Comparison]) -> float:
    """The share of jobs whose second rate is in the 80% interval of its prediction from the first."""
    tables = Transfer.among(CHIPS, model)
    inside = []
    for one in jobs:
        here, there = (CHIPS.index(chip) for chip in one.chips)
        off = one.logs[1] - one.logs[0] - tables.log[HALF, here, there]
        inside.append(abs(off) <= Z80 * math.sqrt(tables.variances[0, HALF, here, there]))
    return float(np.mean(inside))


@pytest.mark.parametrize("spread", [0.5, 1.0, 1.6])
def test_a_fleet_shows_how_much_its_jobs_differ(spread: float) -> None:
    """Its intervals then hold about four fifths of its other jobs, whatever the spread."""
    draw = np.random.default_rng(11)
    before, model = shipped(), shipped().updated(jobs_that_differ(draw, spread, 1000))
    assert model.spread == pytest.approx(spread, rel=0.15)
    others = jobs_that_differ(draw, spread, 2000)
    assert 0.72 < covered(model, others) < 0.88
    assert spread == 1.0 or abs(covered(model, others) - 0.8) < abs(covered(before, others) - 0.8)


def test_one_job_that_is_far_off_does_not_widen_all() -> None:
    usual = np.random.default_rng(2).normal(0.0, 0.1, (30, 2))
    odd = np.concatenate((usual, [[2.0, 0.0]]))
    own, none = np.diag([0.01, 0.01]), np.zeros((2, 2))
    without, with_it = (fleet_spread([Misfit.of(rest, own, none, 0.0)], 0.25) for rest in (usual, odd))
    assert without < with_it < 1.1 * without


def test_noise_tells_nothing_of_a_fleet() -> None:
    """Rates that are as far apart as their windows explain leave the spread as it was."""
    rest, own, none = np.random.default_rng(4).normal(0.0, 0.5, (50, 2)), 0.0001 * np.eye(2), np.zeros((2, 2))
    before = fleet_spread([], 0.25)
    assert fleet_spread([Misfit.of(rest, own, none, 0.25)], 0.25) == pytest.approx(before, rel=0.05)


def test_precisions() -> None:
    v100, h100, tpu = (CATALOG.get(key) for key in ("V100-SXM2-16GB", "H100-SXM5-80GB", "TPU-v5e"))
    assert lacks(v100, "bf16") and lacks(CATALOG.get("T4-16GB"), "bf16") and not lacks(v100, "fp16")
    assert lacks(CATALOG.get("A100-SXM4-80GB"), "fp8") and not lacks(h100, "fp8")
    assert not lacks(v100, "tf32") and not lacks(v100, None) and lacks(tpu, "fp32")
    assert (class_of("bf16"), class_of("tf32"), class_of("fp32")) == (HALF, SINGLE, PLAIN)


@pytest.mark.parametrize("counted", [False, True])
def test_plain_fp32_gains_nothing_by_tf32(counted: bool) -> None:
    """Measured from a V100 to an A100: 1.10 to 1.31 times as fast. A program that allows tf32 gains far more."""
    pools = [pool(key, CATALOG.get(key)) for key in ("V100-SXM2-16GB", "A100-SXM4-40GB")]
    here, there = (Placement(one.name, 1, 1) for one in pools)
    values = {Field.CHIP_BUSY: 0.98, Field.COMPUTE_ACTIVE: 0.9, Field.MEMORY_BANDWIDTH: 0.3} if counted else {}
    rates = {}
    for precision in ("fp32", "tf32"):
        made = profile(1, 100.0, values, traits=ModelTraits(precision=precision))
        ((found,),) = answers(StepModelPredictor(), pools, [Question(made, here, (there,))])
        assert found is not None
        rates[precision] = math.exp(found[0]) / 100.0
    assert 1.05 < rates["fp32"] < 1.7 and rates["tf32"] > 1.5 * rates["fp32"]


def test_modules_of_one_chip_have_the_same_types() -> None:
    orin = ("Orin-AGX-64GB", "Orin-AGX-32GB", "Orin-Nano-8GB")
    assert not any(lacks(CATALOG.get(key), "bf16") for key in orin)


@pytest.mark.parametrize(
    ("key", "matrix", "sms", "expected"),
    [
        ("V100-SXM2-16GB", 0.2, 0.9, HALF),
        ("T4-16GB", 0.01, 0.9, HALF),
        ("T4-16GB", 0.0, 0.9, SINGLE),
        ("V100-SXM2-16GB", 0.0, 0.01, UNKNOWN_PRECISION),
        ("V100-SXM2-16GB", None, 0.9, UNKNOWN_PRECISION),
        ("V100-SXM2-16GB", 0.2, None, UNKNOWN_PRECISION),
        ("A100-SXM4-80GB", 0.2, 0.9, UNKNOWN_PRECISION),
        ("MI210-64GB", 0.2, 0.9, UNKNOWN_PRECISION),
    ],
)
def test_the_class_by_what_units_do(key: str, matrix: float | None, sms: float | None, expected: int) -> None:
    assert observed_class(CATALOG.get(key), matrix, sms) == expected


def log_likelihood(evidence: Evidence, scales: Scales, spread: Floats) -> float:
    """Of the rates under these scales, constants left out."""
    root = np.linalg.cholesky(covariance(evidence, scales, spread))
    rest = np.linalg.solve(root, evidence.rest())
    return -0.5 * float(rest @ rest) - float(np.log(np.diag(root)).sum())


@pytest.mark.jax
def test_the_fit_maximises_the_reference() -> None:
    import jax

    from tools.fit.scales import loss

    made = fleet(np.random.default_rng(5), {chip.key: 0.1 for chip in CHIPS}, 20)
    evidence = Evidence.of([SourcedComparison(f"s{n % 2}", one) for n, one in enumerate(made)], SCALES)
    spread = Spreads.of(evidence, SCALES).rows
    usual = Scales(*[0.1] * 16, fleets=0.3)
    with jax.enable_x64(True):  # not for the whole process, in which other tests use JAX
        value = loss(evidence, spread)
        least = float(value(np.log(np.array(astuple(usual)[:-1]))))
    for other in (SCALES, Scales(*[0.2] * 16, fleets=0.3)):
        logs = np.log(np.array(astuple(other)[:-1]))
        penalty = 0.5 * float((((logs - math.log(0.1)) / 1.0) ** 2).sum())
        reference = -(log_likelihood(evidence, other, spread) - log_likelihood(evidence, usual, spread)) + penalty
        with jax.enable_x64(True):
            difference = float(value(logs)) - least
        assert difference == pytest.approx(reference, abs=1e-6)


def test_any_catalog_chip_to_any_other_is_finite_or_missing() -> None:
    chips: list[Accelerator] = list(CATALOG.accelerators.values())
    tables = Transfer.among(chips, shipped())
    there = ~np.isnan(tables.log)
    assert np.isfinite(tables.variances[0][there]).all() and (tables.variances[0][there] > 0.0).all()
    assert (tables.variances[0] >= tables.variances[1] - 1e-12)[there].all()
    assert (tables.variances[1] >= tables.variances[2] - 1e-12)[there].all()
    both = there[:2].all(axis=0)
    widest = np.where(both, tables.variances[0][:2], 0.0).max(axis=0)
    assert (tables.variances[0][UNKNOWN_PRECISION][both] >= widest[both] - 1e-12).all(), "precision unknown"


def test_the_nearer_memory_is_to_a_copy_the_more_its_bandwidth_decides() -> None:
    whole = CATALOG.get("H100-SXM5-80GB")
    part = replace(
        whole,
        key="H100-part",
        memory_bandwidth=0.688 * whole.memory_bandwidth,
        peak_flops={name: 0.293 * rate for name, rate in whole.peak_flops.items()},
    )
    tables = Transfer.among([whole, part], shipped())
    busy = np.array([0.1, 0.3, 0.5, 0.7, 0.8, 0.85, 0.89, 1.0])
    zeros, ones = np.zeros(len(busy), np.int64), np.ones(len(busy), np.int64)
    logs = tables.by_counters(zeros + HALF, zeros, ones, np.full(len(busy), 0.97), busy) - tables.beyond[HALF, 0, 1]
    assert (np.diff(logs) >= 0.0).all()
    # Above the ratio of arithmetic: what was learned of bandwidth, less than the rule has, counts up to a point only.
    assert math.log(0.293) < logs[0] < math.log(0.33)
    assert logs[-2:] == pytest.approx([math.log(0.688)] * 2, abs=0.05)
