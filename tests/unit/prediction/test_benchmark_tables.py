"""Tables that the benchmark of predictions is given: rows without numbers are left out and counted, and end nothing."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks.prediction import main
from benchmarks.size_cases import ddp, slices
from rightpool.hardware.catalog import load_catalog
from rightpool.prediction.step_model import StepModelPredictor
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
