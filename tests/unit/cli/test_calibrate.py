"""The Job of `rightpool calibrate`, what its pod's state means, and what the command prints. tests/integration/cli runs
it on real API servers."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from rightpool.cli.calibrate import benchmark
from rightpool.cli.calibrate.command import _chips, _how, document, print_calibration
from rightpool.cli.calibrate.job import benchmark_job, benchmark_program
from rightpool.cli.calibrate.run import pod_state, refusal, require_rights
from rightpool.cli.connection import CliError
from rightpool.cluster.errors import Forbidden
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.measurement import calibration, judged, read_measurement
from rightpool.hardware.pool import Pool
from rightpool.hardware.vendors.aws import AWS
from rightpool.hardware.vendors.google import GOOGLE
from tests.unit.cli.cluster import printed, two_pools, view_of
from tests.unit.hardware.test_measurement import H100, NOW, read

CATALOG = load_catalog()


def a100() -> Pool:
    return view_of(two_pools()).fleet().pools["a100"]


def of_vendor(vendor: Any) -> Pool:
    pool = a100()
    return replace(pool, accelerator=replace(pool.accelerator, vendor=vendor))


def test_the_job_asks_for_the_pools_nodes_and_is_restricted() -> None:
    job = benchmark_job(a100(), "ml", image="an/image:1", platform="gpu", dtypes=("bf16", "fp32"), chips=8, seconds=600)
    spec = job["spec"]
    assert spec["backoffLimit"] == 0 and spec["activeDeadlineSeconds"] == 600 and spec["ttlSecondsAfterFinished"] > 0
    pod = spec["template"]["spec"]
    assert pod["nodeSelector"] == dict(a100().node_selector)
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in pod["tolerations"]
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert container["resources"]["requests"]["nvidia.com/gpu"] == "8"
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not container["securityContext"]["allowPrivilegeEscalation"] and not pod["automountServiceAccountToken"]
    assert container["command"][:2] == ["python3", "-c"]
    assert container["command"][3:] == ["--json", "--platform", "gpu", "--dtypes", "bf16,fp32", "--chips", "8"]


def test_names_of_pods_stay_within_their_limit() -> None:
    pool = replace(a100(), name="p" * 63)
    job = benchmark_job(pool, "ml", image="i", platform="gpu", dtypes=("bf16",), chips=1, seconds=60)
    assert len(job["metadata"]["generateName"]) + 5 + 6 <= 63


# Two processes that begin after the import of PyTorch, which takes longer than all that they do.
TWO_CALIBRATIONS = """
import argparse, json, multiprocessing
import torch.distributed
from rightpool.cli.calibrate import benchmark
benchmark.REPEATS, benchmark.measured_copy = 2, lambda framework: None
options = argparse.Namespace(platform="cpu", dtypes=[], chips=2)
context = multiprocessing.get_context("fork")
def calibrate(answers):
    answers.send(benchmark.with_torch(options))
def begun():
    receiver, sender = context.Pipe(duplex=False)
    context.Process(target=calibrate, args=[sender]).start()
    sender.close()
    return receiver
print(json.dumps([receiver.recv() for receiver in [begun(), begun()]]))
"""


def test_two_calibrations_on_one_host_do_not_meet() -> None:
    command = [sys.executable, "-c", TWO_CALIBRATIONS]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    calibrations = json.loads(result.stdout)
    assert len(calibrations) == 2
    for found in calibrations:
        assert found["errors"] == {}
        assert [one["chips"] for one in found["allReduce"]] == [2] and found["allReduce"][0]["median"] > 0.0


def test_the_program_is_passed_as_text_and_refuses_what_it_cannot_do() -> None:
    """As the container runs it: `python3 -c TEXT`, without our packages."""
    command = [sys.executable, "-I", "-S", "-c", benchmark_program(), "--json", "--platform", "cpu"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, env={})
    assert result.returncode != 0
    assert result.stderr.strip() == "benchmark: this image has neither PyTorch nor JAX: take another"


@pytest.mark.parametrize(
    ("chips", "counts"), [(1, []), (2, [2]), (3, [2, 3]), (4, [2, 4]), (8, [2, 4, 8]), (6, [2, 4, 6])]
)
def test_how_many_chips_add_up(chips: int, counts: list[int]) -> None:
    assert benchmark.counts_of(chips) == counts


def measured_here(order: str, *words: str) -> dict[str, Any]:
    """What the program prints on this machine, with the framework that is named, of fewer and shorter repetitions."""
    text = benchmark_program()
    for before, after in {'("jax", "torch")': f'("{order}",)', "0.25, 0.1, 11, 0.15": "0.25, 0.02, 5, 0.03"}.items():
        assert text.count(before) >= 1, before
        text = text.replace(before, after)
    command = [sys.executable, "-c", text, "--json", "--platform", "cpu", *words]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    return dict(json.loads(result.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "framework", [pytest.param("torch", marks=pytest.mark.torch), pytest.param("jax", marks=pytest.mark.jax)]
)
def test_real_chips_are_measured(framework: str) -> None:
    """Two cores that play chips: every rate is one, and the judge believes it."""
    body = measured_here(framework, "--dtypes", "fp32", "--chips", "2")
    assert body["errors"] == {}
    assert [entry["chips"] for entry in body["allReduce"]] == [2]
    found = read_measurement(json.dumps(body))
    cpu = CATALOG.get("CPU")
    reason, message = judged(found, cpu, 2, CATALOG)
    assert reason == "Measured", message
    assert 1e8 < found.flops["fp32"].median < 1e13
    assert found.copy is not None and 1e8 < found.copy.median < 1e12
    assert found.software.lower().startswith({"torch": "pytorch", "jax": "jax"}[framework])


# --- what the pod does -----------------------------------------------------------------------------------------------


def pod(phase: str, state: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    containers = [] if state is None else [{"name": "benchmark", "state": state}]
    return {"spec": {"nodeName": "n1"}, "status": {"phase": phase, "containerStatuses": containers, **status}}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def test_states_that_end_or_go_on() -> None:
    assert pod_state(pod("Succeeded")) == ("", True)
    assert pod_state(pod("Failed", {"terminated": {"exitCode": 1, "reason": "Error"}})) == ("", True)
    assert pod_state(pod("Running", {"running": {}})) == ("measuring on n1", False)
    assert pod_state(pod("Pending", waiting("ContainerCreating"))) == ("starting; a new image takes minutes", False)
    conditions = [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]
    assert pod_state(pod("Pending", conditions=conditions)) == ("waiting for a node: 0/3 nodes are available", False)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (pod("Pending", waiting("ImagePullBackOff", "not found")), "ImagePullBackOff: not found"),
        (pod("Pending", waiting("InvalidImageName")), "choose another image by --image"),
        (pod("Failed", {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}), "more memory"),
        (pod("Failed", reason="Evicted", message="disk is full"), "the pod failed: Evicted: disk is full"),
    ],
)
def test_states_that_waiting_does_not_correct(state: dict[str, Any], message: str) -> None:
    with pytest.raises(CliError, match=message):
        pod_state(state)


def test_a_pod_that_is_not_admitted() -> None:
    assert refusal([{"reason": "SuccessfulCreate", "message": "x"}]) == ""
    assert refusal([{"reason": "FailedCreate", "message": "exceeded quota"}]) == "exceeded quota"


class Reviews:
    """Answers access reviews; `denied` are refused, and all where there is no such API."""

    def __init__(self, *denied: str, api: bool = True) -> None:
        self.denied, self.api = denied, api

    def create(self, _: Any, body: dict[str, Any]) -> dict[str, Any]:
        if not self.api:
            raise Forbidden("no")
        asked = body["spec"]["resourceAttributes"]
        return {"status": {"allowed": f"{asked['verb']} {asked['resource']}" not in self.denied}}


def test_missing_rights_are_named_before_anything_runs() -> None:
    require_rights(Reviews(), "ml")  # type: ignore[arg-type]
    require_rights(Reviews(api=False), "ml")  # type: ignore[arg-type]
    with pytest.raises(CliError) as caught:
        require_rights(Reviews("create jobs", "patch acceleratorpools"), "ml")  # type: ignore[arg-type]
    message = str(caught.value)
    assert "create jobs (batch) in namespace ml, patch acceleratorpools/status (rightpool.dev):" in message


# --- what is asked for, and what is printed --------------------------------------------------------------------------


def test_what_cannot_be_measured_says_why() -> None:
    assert _how(a100(), None)[0] == "gpu" and _how(a100(), "mine")[1] == "mine"
    with pytest.raises(CliError, match="no benchmark for chips of AWS"):
        _how(of_vendor(AWS), None)
    with pytest.raises(CliError, match="no default image for chips of Google"):
        _how(of_vendor(GOOGLE), None)
    assert _how(of_vendor(GOOGLE), "jax:tpu") == ("tpu", "jax:tpu")
    assert _chips(a100(), None) == 8 and _chips(a100(), 2) == 2
    with pytest.raises(CliError, match="a node of a100 has 1 to 8"):
        _chips(a100(), 9)


def test_the_table_and_the_document() -> None:
    measured = read()
    found = calibration(measured, H100, judged(measured, H100, 8, CATALOG), node="node-1", now=NOW)
    page, stream = printed()
    print_calibration(page, found, H100)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "NVIDIA H100 80GB HBM3, 8 chips of node-1, PyTorch 2.7.1, CUDA 12.6"
    assert lines[2].split() == ["RATE", "MEASURED", "DATA", "SHEET", "SHARE"]
    assert "bf16 TFLOP/s                712         989    72%" in lines
    assert lines[-1].split() == ["all-reduce", "of", "8,", "GB/s", "372", "-", "-"]
    body = document("h100", found, H100)
    assert body["calibration"]["teraflops"]["bf16"] == 712 and body["dataSheet"]["memoryGigabytesPerSecond"] == 3352
    assert body["calibration"]["reason"] == "Measured"
