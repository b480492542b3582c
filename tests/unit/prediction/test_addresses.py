"""Programs that gather and scatter: their SMs are always active and wait for memory, so FLOP/s do not carry them."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from rightpool.api.choices import Batch
from rightpool.api.estimate import Estimate
from rightpool.api.traits import ModelTraits
from rightpool.hardware.catalog import load_catalog
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field
from tests.gpu.labelled_runs import profile_of
from tests.unit.prediction.fixtures import at, pool, predict, profile, without

_CATALOG = load_catalog()
HOME = _CATALOG.get("H200-SXM-141GB")
# With 1.37 times the FLOP/s of plain fp32, and 0.18 of the bandwidth.
NARROW = _CATALOG.get("L40S-48GB")
_PAGES = Path(__file__).parents[1] / "profiles" / "recorded" / "labelled_gpu_pages.json.gz"
FIELDS = (
    "chip_busy", "compute_active", "matrix_active", "memory_bandwidth", "fp32_active", "fp64_active", "fp16_active",
)  # fmt: skip


def recorded(name: str) -> Profile:
    """Of the program's page on an H200, at a rate of 100."""
    with gzip.open(_PAGES, "rt") as file:
        runs = {run["name"]: run for run in json.load(file)["runs"]}
    found = profile_of(runs[name]["pages"], runs[name]["gpus"])
    made = profile(1, 100.0, **{field: found.value(Field[field.upper()]) for field in FIELDS})
    return replace(made, traits=ModelTraits(precision="fp32"))


def slower_there(made: Profile) -> Estimate:
    result = predict(made, at(pool("home", HOME), 1), at(pool("narrow", NARROW), 1), batch=Batch.PER_CHIP)
    assert isinstance(result, Estimate)
    return result


@pytest.mark.parametrize("name", ["gat_fullbatch", "dlrm", "graph_network"])
def test_gathers_are_carried_by_the_memorys_bandwidth(name: str) -> None:
    made = recorded(name)
    there = slower_there(made)
    ratio = NARROW.memory_bandwidth / HOME.memory_bandwidth
    assert abs(math.log(there.median / 100.0 / ratio)) < math.log(1.6)
    blind = slower_there(without(made, Field.FP32_ACTIVE, Field.FP64_ACTIVE, Field.FP16_ACTIVE))
    assert blind.median > 1.5 * there.median, "SMs that are active look like arithmetic"
    assert there.sd > blind.sd, "what is known of doubt was learned from programs that compute"


@pytest.mark.parametrize("name", ["gpt_fp32", "no_optimizer", "accelerate_bert_fp32", "ddp_convnext", "resnet50_amp"])
def test_programs_that_compute_are_carried_as_before(name: str) -> None:
    made = recorded(name)
    blind = without(made, Field.FP32_ACTIVE, Field.FP64_ACTIVE, Field.FP16_ACTIVE)
    assert slower_there(made) == slower_there(blind)


def test_small_kernels_are_no_gathers() -> None:
    """Their SMs are idle for most of the time: that is latency."""
    made = recorded("lightning_conv_ae")
    assert slower_there(made) == slower_there(without(made, Field.FP32_ACTIVE))
