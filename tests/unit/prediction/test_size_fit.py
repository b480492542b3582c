"""Scales of sizes: what tables say, and what is fitted of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from rightpool.hardware.catalog import load_catalog
from rightpool.prediction.size_scales import SizeScales, shipped_sizes
from tools.fit import sizes
from tools.fit.scaling import Scaling, scalings
from tools.fit.sizes import fitted_sizes

CHIP = load_catalog().get("A100-SXM4-80GB")
HEADER = "dataset,model,section,task,config,gpu,count,batch_per_gpu,precision,column,throughput,container,src"


def jobs(spread: float, count: int = 12) -> list[Scaling]:
    """Jobs that double by some 1.9, each in its own way, with noise between its sizes."""
    draw = np.random.default_rng(1)
    made = []
    for _ in range(count):
        slope = draw.normal(0.93, 0.03)
        rates = {chips: 100.0 * chips**slope * float(np.exp(draw.normal(0.0, spread))) for chips in (1, 2, 4, 8)}
        made.append(Scaling("one", CHIP, rates))
    return made


def test_the_scales_are_what_they_are_written_as() -> None:
    scales = shipped_sizes()
    assert SizeScales.read(scales.write({"made": "in a test"})) == scales
    assert all(scale > 0.0 for scale in astuple(scales))


def test_the_same_rates_give_the_same_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "EVALUATIONS", 40)
    assert fitted_sizes(jobs(0.01)) == fitted_sizes(jobs(0.01))


def test_what_is_doubtful_in_the_rates_is_in_the_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "EVALUATIONS", 120)
    monkeypatch.setattr(sizes, "WITHIN", 20.0)
    steady, erratic = fitted_sizes(jobs(0.005)), fitted_sizes(jobs(0.15))
    assert erratic.seen > 1.5 * steady.seen


@pytest.mark.parametrize(("factor", "kept"), [(1.2, 1), (4.0, 0)])
def test_rows_of_several_jobs_that_nothing_tells_apart_are_left_out(tmp_path: Path, factor: float, kept: int) -> None:
    rates = ((1, 100.0), (1, 100.0 * factor), (8, 760.0))
    rows = [f"d,net,train,,,A100-SXM4-80GB,{count},64,mixed,rate,{rate},,README" for count, rate in rates]
    (tmp_path / "nvidia_dle.csv").write_text("\n".join((HEADER, *rows)) + "\n", encoding="utf-8")
    unknown: Counter[str] = Counter()
    assert len(scalings(tmp_path, load_catalog(), unknown)) == kept
    assert unknown["dle does not tell jobs on A100-SXM4-80GB apart"] == (0 if kept else 3)
