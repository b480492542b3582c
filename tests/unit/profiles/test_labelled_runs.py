"""The diagnosis of programs on NVIDIA chips whose bottleneck is known by how they are made.

Recorded with `python -m tests.gpu.labelled_runs` on H200s and H100s: PyTorch 2.11, JAX 0.11.2, driver 580.159.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rightpool.hardware.catalog import load_catalog
from rightpool.profiles.bottleneck import Bottleneck
from rightpool.profiles.diagnosis import diagnose
from rightpool.profiles.profile import Steadiness
from tests.gpu.labelled_libraries import LIBRARIES
from tests.gpu.labelled_models import MODELS
from tests.gpu.labelled_profiles import Labelled, read
from tests.gpu.labelled_programs import PROGRAMS
from tests.gpu.labelled_runs import profile_of

_RECORDED = Path(__file__).with_name("recorded")
RUNS = tuple(read(_RECORDED / "labelled_gpu_runs.jsonl"))
# Two or three at a time beside a cluster that ran jobs, all on one host: the pace of those that wait for their
# processor changed, and more of them are left undecided.
SIDE_BY_SIDE = tuple(read(_RECORDED / "labelled_gpu_runs_side_by_side.jsonl"))
# Each alone, on H100s. Four profiles were undecided when they were recorded; these are made of the same pages since a
# pace that goes up and down is no warm-up.
ALONE = tuple(read(_RECORDED / "labelled_gpu_runs_alone.jsonl"))
# All of them anew, each alone, once that test was mended.
ANEW = tuple(read(_RECORDED / "labelled_gpu_runs_anew.jsonl"))

# Pages, of an H200: PyTorch 2.11, JAX 0.11.2. Beside the programs here some whose bottleneck users had reported wrong.
with gzip.open(_RECORDED / "labelled_gpu_pages.json.gz", "rt") as _file:
    PAGES = json.load(_file)
WRONG = {
    "decode_13b": Bottleneck.HOST_BOUND,  # that host left its chip idle 73% of the time, others 1 to 20%
}

RIGHT = 0.95  # of all runs, at least; the others are left undecided


def named(run: Labelled) -> bool:
    return diagnose(run.profile, load_catalog().get(run.chip)).bottleneck.value in run.labels


@pytest.mark.parametrize("run", RUNS + SIDE_BY_SIDE + ALONE + ANEW, ids=lambda run: f"{run.name}-{run.chip}")
def test_the_bottleneck_is_named_or_the_program_is_not_steady_yet(run: Labelled) -> None:
    diagnosis = diagnose(run.profile, load_catalog().get(run.chip))
    undecided = diagnosis.bottleneck is Bottleneck.UNKNOWN and run.profile.steadiness is Steadiness.WARMING_UP
    assert undecided or named(run), diagnosis.finding.text()


@pytest.mark.parametrize("runs", [RUNS, ALONE, ANEW], ids=["first", "alone", "anew"])
def test_nearly_all_are_named(runs: tuple[Labelled, ...]) -> None:
    assert sum(map(named, runs)) >= RIGHT * len(runs)


@pytest.mark.parametrize("runs", [RUNS, ALONE, ANEW], ids=["first", "alone", "anew"])
def test_each_program_was_run_and_labels_are_classes(runs: tuple[Labelled, ...]) -> None:
    assert {run.name for run in runs} == PROGRAMS.keys() | MODELS.keys() | LIBRARIES.keys()
    assert {label for run in runs for label in run.labels} <= {str(kind) for kind in Bottleneck}


@pytest.mark.parametrize("run", PAGES["runs"], ids=lambda run: run["name"])
def test_the_bottleneck_is_named_by_the_pages(run: dict[str, Any]) -> None:
    catalog = load_catalog()
    chip = catalog.get(catalog.by_label("nvidia.com/gpu.product", PAGES["chip"].replace(" ", "-")) or PAGES["chip"])
    found = diagnose(profile_of(run["pages"], run["gpus"]), chip)
    assert found.bottleneck.value in (WRONG.get(run["name"]), *run["labels"]), found.finding.text()


def test_few_pages_name_another() -> None:
    assert len(WRONG) <= (1.0 - RIGHT) * len(PAGES["runs"])
