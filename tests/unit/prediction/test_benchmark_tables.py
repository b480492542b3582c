"""Tables that the benchmark of predictions is given: rows without numbers are left out and counted, and end nothing."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchmarks.ablations import best_share, median_scaling
from benchmarks.chip_cases import chip_cases
from benchmarks.limits import LIMITS, limits
from benchmarks.prediction import main
from benchmarks.scored import Line, Scored, coverage, quantiles
from benchmarks.size_cases import ddp, slices
from rightpool.hardware.catalog import load_catalog
from rightpool.prediction.step_model import StepModelPredictor
from tools.fit.scaling import Scaling
from tools.fit.throughput import published

USELESS = ("nan", "inf", "-inf", "-5", "0", "", "abc")

COUNTED = (
    "workload,slice,sms,measured_bf16_tflops,measured_copy_gbps,samples_per_s,graphics_util,sm_util,tensor_util,"
    "dram_bw_util"
)
LINKED = "workload,link,gpus,params,step_ms,samples_per_s,graphics_util,sm_util,dram_bw_util,exposed_comm_share"


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("useless", USELESS)
def test_rates_that_are_no_numbers_are_left_out_and_counted(tmp_path: Path, useless: str) -> None:
    rows = ("s,one,A100-SXM4-80GB,100,bf16", "s,one,H100-SXM5-80GB,250,bf16", f"s,two,H100-SXM5-80GB,{useless},bf16")
    written(tmp_path / "cross_accelerator.csv", "ds,wl,gpu,thr,pc", *rows, f"s,one,A100-SXM4-80GB,{useless},bf16")
    found = published(tmp_path)
    assert [work.name for work in found.works] == ["one"]
    assert all(math.isfinite(log) for log in found.works[0].comparison.logs)
    assert found.unknown["no number for the rate in cross_accelerator.csv"] == 2


KEYS = {"case", "source", "pairs", "median", "p90", "coverage", "regret", "order", "bar", "ok"}


def test_the_json_has_each_case_with_its_own_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chips = {"V100-SXM2-16GB": 100, "A100-SXM4-80GB": 210, "H100-SXM5-80GB": 390, "Abacus": 3}
    rows = [f"s,job{job},{chip},{rate * (1 + job / 9)},fp16" for job in range(3) for chip, rate in chips.items()]
    written(tmp_path / "cross_accelerator.csv", "ds,wl,gpu,thr,pc", *rows)
    out = tmp_path / "lines.json"
    assert main(["--test", str(tmp_path), "--json", str(out)]) == 0
    lines = json.loads(out.read_text(encoding="utf-8"))
    assert all(line.keys() == KEYS for line in lines)
    assert (lines[0]["case"], lines[0]["source"], lines[0]["pairs"]) == ("another accelerator", "all", 18)
    assert 0.0 <= lines[0]["median"] <= lines[0]["p90"] < 1.0
    by_case = {(line["case"], line["source"]): line for line in lines}
    regret = by_case["choice of pool, regret, gates included", "all"]
    order = by_case["choice of pool, pairs in order", "all"]
    assert 0.0 <= regret["regret"] < 1.0 and regret["order"] is None
    assert 0.0 <= order["order"] <= 1.0 and order["regret"] is None
    assert by_case["left out", "Abacus is not in the catalog"]["pairs"] == 3
    assert by_case["ablation: median ratio of other jobs", "all"]["coverage"] is None
    assert "Abacus is not in the catalog" in capsys.readouterr().out


def scored(hits: int, pairs: int, target: str = "A100") -> list[Scored]:
    return [Scored("s", target, 0.0, 0.1, 0.0 if number < hits else 1.0) for number in range(pairs)]


@pytest.mark.parametrize(("hits", "ok"), [(74, False), (75, True), (90, True), (91, False), (100, False)])
def test_intervals_are_judged_from_below_and_from_above(hits: int, ok: bool) -> None:
    lines = coverage("case", scored(hits, 100))
    assert [(line.source, line.ok) for line in lines[:-1]] == [("all", ok), ("source s", ok), ("on A100", ok)]
    assert lines[-1].ok is True


def test_the_lowest_coverage_has_a_bar_of_its_own_and_few_pairs_none() -> None:
    lines = {
        line.source: line for line in coverage("case", [*scored(85, 100), *scored(60, 100, "L4"), *scored(9, 9, "T4")])
    }
    assert (lines["on L4"].ok, lines["on A100"].ok, lines["on T4"].ok) == (False, True, None)
    assert lines["lowest: on L4"].ok is False


@pytest.mark.parametrize("useless", USELESS)
def test_the_benchmark_goes_on_without_them(tmp_path: Path, capsys: pytest.CaptureFixture[str], useless: str) -> None:
    rows = [f"v1,net,train,fp16,A100-SXM4-80GB,{count},{count * 90}" for count in (1, 2, 8)]
    rows += [f"v1,other,train,fp16,A100-SXM4-80GB,4,{useless}", f"v1,net,train,fp16,A100-SXM4-80GB,{useless},100"]
    written(tmp_path / "lambda_train.csv", "stack,model,mode,precision,gpu,count,throughput", *rows)
    assert main(["--test", str(tmp_path), "--quick"]) == 0
    shown = capsys.readouterr().out
    assert "no number for the rate or size in lambda" in shown and "nan" not in shown


@pytest.mark.parametrize("useless", USELESS)
def test_counters_that_are_no_numbers_are_absent(tmp_path: Path, useless: str) -> None:
    parts = [f"net,H200-{sms}sm,{sms},{sms * 6},{sms * 30},{sms * 9}" for sms in (33, 66, 132)]
    lines = [f"{part},99,{useless},20,40" for part in parts]
    path = written(tmp_path / "slices.csv", COUNTED, *lines, f"net,H200-16sm,16,100,900,{useless},99,80,20,40")
    found = slices(StepModelPredictor(), path)
    assert len(found.counted) == len(found.alone) == 6
    assert all(math.isfinite(one.log) and math.isfinite(one.sd) for one in found.counted)


@pytest.mark.parametrize("useless", USELESS)
def test_links_that_were_not_measured_are_absent(tmp_path: Path, useless: str) -> None:
    lines = [f"net,NVLink,{count},1000000,50,{count * 90},99,{useless},40,{useless}" for count in (1, 2, 4)]
    path = written(tmp_path / "ddp.csv", LINKED, *lines, f"net,NVLink,8,1000000,50,{useless},99,80,40,0.1")
    found = ddp(StepModelPredictor(), path, load_catalog())
    scored = [*found.blind["with NVLink"], *found.more["with NVLink"], *found.back["with NVLink"]]
    assert len(scored) == 4
    assert all(math.isfinite(one.log) and math.isfinite(one.sd) for one in scored)


def test_a_missed_bar_stands_beside_what_its_ablation_reaches() -> None:
    missed = Line("another accelerator", "all", 9, 0.2, 0.5, bar="<= 10.5% / 36%", ok=False)
    shown = Line("ablation: median ratio of other jobs", "all", 9, 0.21, 0.52)
    order = Line("choice of pool, pairs in order", "all", 9, order=0.9, bar=">= 94%", ok=False)
    strange = Line("something new", "all", 9, 0.3, 0.6, bar="<= 1% / 2%", ok=False)
    by_source = Line("another accelerator", "lambda", 9, 0.9, 0.9, bar="<= 10.5% / 36%", ok=False)
    reached = Line("blind 1 to 8", "all", 9, 0.01, 0.02, bar="<= 6.5% / 27%", ok=True)
    rows = limits([missed, by_source, shown, order, strange, reached])[2:-1]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert cells == [
        [missed.case, "20.0% / 50.0%", missed.bar, "median ratio of other jobs", "21.0% / 52.0%", cells[0][5]],
        [order.case, "90.0%", ">= 94%", "rates from the model, pairs in order", "", cells[1][5]],
        [strange.case, "30.0% / 60.0%", "<= 1% / 2%", "", "", "not known"],
    ]
    assert cells[0][5] == LIMITS[missed.case].reason
    assert limits([reached]) == []


def test_no_share_of_half_precision_is_better_than_the_best(tmp_path: Path) -> None:
    rates = {"T4-16GB": 30, "V100-SXM2-16GB": 100, "A100-SXM4-80GB": 260, "H100-SXM5-80GB": 480}
    rows = [
        f"s,job{job},{chip},{rate * (1 + job / 7)},{precision}"
        for job, precision in enumerate(("fp16", "fp16", "fp16", "fp32"))
        for chip, rate in rates.items()
    ]
    written(tmp_path / "cross_accelerator.csv", "ds,wl,gpu,thr,pc", *rows)
    works = published(tmp_path).works
    cases = chip_cases(works, works, quick=True)
    known = quantiles([one.error for one in cases.one])

    def worse(scored: list[Scored]) -> float:
        ours = quantiles([one.error for one in scored])
        return max(ours[0] / known[0], ours[1] / known[1])

    best = best_share(works, cases.one)
    assert len(best) == len(cases.blind) == len(cases.one)
    assert worse(best) <= worse(cases.blind) * 1.001, "60% is among the shares"


def test_the_median_scaling_of_other_jobs_leaves_the_job_itself_out() -> None:
    chip = load_catalog().get("A100-SXM4-80GB")
    found = [Scaling("s", chip, {1: 10.0, 8: 10.0 * gain}) for gain in (4.0, 6.0, 7.0)]
    found += [Scaling("other", chip, {1: 1.0, 8: 1.0}), Scaling("s", chip, {1: 1.0, 4: 2.0})]
    scored = median_scaling(found, 8)
    assert [math.exp(one.log) for one in scored] == pytest.approx(
        [10 * math.sqrt(42), 10 * math.sqrt(28), 10 * math.sqrt(24)]
    )
