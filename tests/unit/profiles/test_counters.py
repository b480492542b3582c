"""The classes against counters measured on H200: slices of one chip, and DDP with and without NVLink."""

from __future__ import annotations

import csv
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from rightpool.api.pool import LinkKind
from rightpool.hardware.accelerator import Link
from rightpool.hardware.catalog import load_catalog
from rightpool.profiles.bottleneck import Bottleneck, Diagnosis
from rightpool.profiles.diagnosis import diagnose
from rightpool.profiles.shares import decompose
from tests.unit.profiles.windows import profile

H200 = load_catalog().get("H200-SXM-141GB")
PCIE, NVLINK = Link(LinkKind.PCIE, 25e9), H200.intra_link
FULL = "H200-132sm"


def rows(name: str) -> list[dict[str, str]]:
    shared = os.environ.get("RIGHTPOOL_SHARED")
    table = Path(shared or "", "data/counters", name)
    if not shared or not table.is_file():
        pytest.skip(f"RIGHTPOOL_SHARED does not name a folder with data/counters/{name}")
    return list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))


def counters(row: dict[str, str], part: float = 1.0) -> dict[str, float]:
    """The row's counters as readings. part: share of the chip that the program may use."""
    return {
        "chip_busy": float(row["graphics_util"]) / 100,
        "compute_active": min(1.0, float(row["sm_util"]) / 100 / part),
        "matrix_active": float(row["tensor_util"]) / 100 / part,
        "memory_bandwidth": float(row["dram_bw_util"]) / 100,
        "power": float(row["watts"]),
        "samples_per_second": float(row["samples_per_s"]),
    }


@pytest.fixture(scope="module")
def slices() -> dict[tuple[str, str], Diagnosis]:
    found = {}
    for row in rows("h200_slices.csv"):
        share = float(row["sms"]) / 132
        found[row["workload"], row["slice"]] = diagnose(profile(1, **counters(row, share)), H200)
    return found


@pytest.mark.parametrize("workload", ["mobilenet_v3/b32/train", "resnet50/b16/train", "gpt_125m/b2/train"])
def test_small_batches_are_host_bound_on_the_whole_chip(
    slices: dict[tuple[str, str], Diagnosis], workload: str
) -> None:
    assert slices[workload, FULL].bottleneck is Bottleneck.HOST_BOUND


def test_a_busy_chip_is_not_host_bound(slices: dict[tuple[str, str], Diagnosis]) -> None:
    for (workload, part), diagnosis in slices.items():
        if any(batch in workload for batch in ("/b64/", "/b128/", "/b256/", "/b32768/", "/b16/infer", "/b8/")):
            assert diagnosis.bottleneck is not Bottleneck.HOST_BOUND, (workload, part, diagnosis.finding.text())


def test_elementwise_work_is_memory_bandwidth(slices: dict[tuple[str, str], Diagnosis]) -> None:
    for (workload, part), diagnosis in slices.items():
        if workload.startswith("elementwise"):
            assert diagnosis.bottleneck is Bottleneck.MEMORY_BANDWIDTH, (part, diagnosis.finding.text())


def test_nothing_on_one_chip_communicates(slices: dict[tuple[str, str], Diagnosis]) -> None:
    classes = Counter(diagnosis.bottleneck for diagnosis in slices.values())
    assert classes[Bottleneck.COMMUNICATION_BOUND] == classes[Bottleneck.INPUT_BOUND] == 0
    assert classes[Bottleneck.IDLE] == classes[Bottleneck.THROTTLED] == 0
    assert classes[Bottleneck.UNKNOWN] <= len(slices) // 10


def test_the_idle_share_is_what_a_smaller_chip_does_not_cost() -> None:
    """Work that waits loses less on half the chip: measured loss and idle share go in opposite directions."""
    table = {(row["workload"], row["slice"]): row for row in rows("h200_slices.csv")}
    loss, idle = {}, {}
    for workload, part in table:
        if part != FULL:
            continue
        whole, half = table[workload, FULL], table[workload, "H200-66sm"]
        loss[workload] = 1 - float(half["samples_per_s"]) / float(whole["samples_per_s"])
        shares = decompose(profile(1, **counters(whole)))
        assert shares is not None
        idle[workload] = shares.idle
    waiting = [workload for workload in idle if idle[workload] >= 0.2]
    assert len(waiting) >= 3
    most = max(loss[workload] for workload in waiting)
    assert most < 0.1
    assert all(loss[workload] > most for workload in idle if idle[workload] < 0.05)


def test_ddp() -> None:
    for row in rows("h200_ddp.csv"):
        chips, exposed = int(row["gpus"]), float(row["exposed_comm_share"])
        link = NVLINK if row["link"] == "NVLink" else PCIE
        fields = {**counters(row), "exposed_communication": exposed}
        diagnosis = diagnose(profile(chips, **fields), replace(H200, intra_link=link))
        case = (row["workload"], row["link"], chips, diagnosis.finding.text())
        assert float(row["nvml_gpu_util"]) >= 99, "which proves nothing"
        if exposed >= 0.2:
            assert diagnosis.bottleneck is Bottleneck.COMMUNICATION_BOUND, case
            assert "over PCIe on 4 chips" in diagnosis.finding.text(), case
        else:
            assert diagnosis.bottleneck in (Bottleneck.MEMORY_BANDWIDTH, Bottleneck.COMPUTE), case


def test_shares_agree_with_traces() -> None:
    """The chip's share from counters against the share of computation in the trace of the same run."""
    for row in rows("h200_ddp.csv"):
        fields = {**counters(row), "exposed_communication": float(row["exposed_comm_share"])}
        shares = decompose(profile(int(row["gpus"]), **fields))
        assert shares is not None
        assert shares.chip == pytest.approx(float(row["compute_share"]), abs=0.06), row["workload"]
