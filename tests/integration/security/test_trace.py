"""Traces on request: a real PyTorch program in a real pod, the operator of the chart, and the command as two users.

PyTorch is not in any image here: the pod mounts this machine's packages, which its namespace allows.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from devcluster.spec import DevclusterError
from rightpool.contract import ANNOTATION_TRACE, SIDECAR_CONTAINER
from tests.patience import PATIENCE, eventually

from ..chart.release import DEV_POOL, Release

pytestmark = [pytest.mark.cluster, pytest.mark.torch]

ROOT: Final = Path(__file__).parents[3]
NAMESPACE: Final = "prod"
JOB: Final = "traced"
_PACKAGES: Final = Path(pytest.__file__).parents[1]
_PROGRAM: Final = """
import time, torch
torch.set_num_threads(1)
net = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
print("training", flush=True)
while True:
    began = time.monotonic()
    net(torch.ones(8, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(min(max(0.02, 3 * (time.monotonic() - began)), 2.0))  # most of the time on any machine
"""
PAIR: Final = "pair"
_PAIR: Final = """
import os, time, torch
import torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
print("training", flush=True)
while True:
    until = time.monotonic() + (0.7 if dist.get_rank() == 1 else 0.0)
    while time.monotonic() < until:
        torch.ones(256, 256) @ torch.ones(256, 256)
    net(torch.ones(8, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
_READS: Final = {"apiGroups": ["rightpool.dev"], "resources": ["profiledjobs"], "verbs": ["get", "list", "patch"]}
_RULES: Final[dict[str, list[dict[str, Any]]]] = {
    "asker": [_READS],
    "reader": [_READS, {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]}],
    "lister": [
        _READS,
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ],
}


def steps_of(trace: dict[str, Any]) -> int:
    """How many steps the status says that the trace holds. On a busy machine its time may end before the last one."""
    steps = int(trace["summary"]["steps"])
    assert 1 <= steps <= 4
    return steps


class Site:
    def __init__(self, release: Release, folder: Path) -> None:
        self.release = release
        self.kubectl = release.kubectl
        self.folder = folder

    def user(self, name: str) -> Path:
        """A kubeconfig of a user with the rights of that name."""
        meta = {"name": f"trace-{name}", "namespace": NAMESPACE}
        rbac = "rbac.authorization.k8s.io"
        subject = {"kind": "ServiceAccount", **meta}
        self.kubectl.apply(
            [
                {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
                {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta, "rules": _RULES[name]},
                {
                    "apiVersion": f"{rbac}/v1",
                    "kind": "RoleBinding",
                    "metadata": meta,
                    "roleRef": {"apiGroup": rbac, "kind": "Role", "name": meta["name"]},
                    "subjects": [subject],
                },
            ]
        )
        token = self.kubectl("create", "token", meta["name"], f"--namespace={NAMESPACE}", "--duration=2h").strip()
        config = yaml.safe_load(Path(self.release.cluster.kubeconfig).read_text())
        config["users"] = [{"name": config["contexts"][0]["context"]["user"], "user": {"token": token}}]
        config["contexts"][0]["context"]["namespace"] = NAMESPACE
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    def start(self, *words: str, user: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "rightpool.cli.main", "trace", *words],
            env={**os.environ, "PYTHONPATH": str(ROOT / "operator"), "KUBECONFIG": str(user)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
        )

    def trace(self, *words: str, user: Path) -> tuple[int, str, str]:
        process = self.start(*words, user=user)
        out, err = process.communicate(timeout=3 * PATIENCE)
        return process.returncode, out, err

    def status(self, job: str = JOB) -> dict[str, Any]:
        body = self.kubectl.json("get", "profiledjob", job, f"--namespace={NAMESPACE}")
        return dict(body.get("status", {}).get("trace") or {})

    def annotate(self, value: str) -> None:
        self.kubectl("annotate", "profiledjob", JOB, f"--namespace={NAMESPACE}", "--overwrite", value)

    def over(self, identity: str) -> dict[str, Any]:
        eventually(
            lambda: self.status().get("id") == identity and "finishedAt" in self.status(),
            lambda: f"{self.status()}\n{self.release.operators()}",
        )
        return self.status()

    def kill_sidecar(self, pod: str) -> None:
        kill = "import os, signal; os.kill(1, signal.SIGTERM)"
        where = (f"--namespace={NAMESPACE}", pod, f"--container={SIDECAR_CONTAINER}")
        try:
            self.kubectl("exec", *where, "--", "python3", "-c", kill)
        except DevclusterError as error:
            # The command is a process of the container, whose end may come before its own.
            if "exit code 137" not in str(error):
                raise

    def sidecar_restarts(self, pod: str) -> int:
        status = self.kubectl.json("get", "pod", pod, f"--namespace={NAMESPACE}")["status"]
        containers = [*status.get("initContainerStatuses", []), *status["containerStatuses"]]
        return sum(one["restartCount"] for one in containers if one["name"] == SIDECAR_CONTAINER)

    def running(self, job: str = JOB) -> list[str]:
        pods = self.kubectl.json(
            "get", "pods", f"--namespace={NAMESPACE}", f"--selector=rightpool.dev/profiledjob={job}"
        )
        return [
            f"{pod['metadata']['name']}/{pod['status']['containerStatuses'][0]['restartCount']}"
            for pod in pods["items"]
            if pod["status"]["phase"] == "Running"
        ]

    def training(self, job: str, pods: int) -> bool:
        """Whether all programs are past their imports. A loaded machine may take minutes for them, and a trace waits
        for an agent for three minutes from the pod's start."""
        running = [one.partition("/")[0] for one in self.running(job)]
        logs = (self.kubectl("logs", pod, f"--namespace={NAMESPACE}", "--container=trainer") for pod in running)
        return len(running) == pods and all("training" in log for log in logs)


def _job(release: Release, name: str, program: str, replicas: int) -> dict[str, Any]:
    """A job of pods with one chip each."""
    values = yaml.safe_load(release.images.read_text())["sidecar"]["image"]
    image = f"docker.io/rightpool/profiler@{values['digest']}"
    container = {
        "name": "trainer",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", program],
        "env": [{"name": "PYTHONPATH", "value": str(_PACKAGES)}],
        "resources": {"limits": {"cpu": "500m"}},  # one of the pair computes all the time
        "volumeMounts": [{"name": "packages", "mountPath": str(_PACKAGES), "readOnly": True}],
    }
    volume = {"name": "packages", "hostPath": {"path": str(_PACKAGES)}}
    return {
        "apiVersion": "rightpool.dev/v1alpha1",
        "kind": "ProfiledJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "workload": {
                "job": {
                    "replicas": replicas,
                    "chipsPerReplica": 1,
                    "template": {"spec": {"containers": [container], "volumes": [volume]}},
                }
            },
            "placement": {"pools": {"allow": ["dev"]}},
        },
    }


@pytest.fixture(scope="module")
def site(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A job of one pod that makes steps."""
    site = Site(release, tmp_path_factory.mktemp("trace"))
    site.kubectl.apply([DEV_POOL, _job(release, JOB, _PROGRAM, replicas=1)])
    eventually(lambda: site.training(JOB, 1), lambda: f"{site.status()}\n{release.operators()}")
    yield site
    site.kubectl("delete", "profiledjob", JOB, f"--namespace={NAMESPACE}", "--ignore-not-found")


def test_the_annotation_is_served_once(site: Site) -> None:
    before = site.running()
    site.annotate(f"{ANNOTATION_TRACE}=now")
    trace = site.over("now")
    assert trace["state"] == "Captured", trace
    assert trace["pod"] == before[0].partition("/")[0] and trace["rank"] == 0
    parts = {part["part"]: float(part["share"]) for part in trace["summary"]["parts"]}
    assert sum(parts.values()) == pytest.approx(1.0, abs=0.05) and parts["Idle"] > 0.3, "the program sleeps"
    (idle,) = (part for part in trace["summary"]["parts"] if part["part"] == "Idle")
    half = 0.006  # of the last decimal of a share
    low, high = (1 / max(1 - parts["Idle"] + most, 1e-3) for most in (half, -half))
    assert low <= float(idle.get("limit", high)) <= high
    assert len(json.dumps(trace)) < 6000
    events = ("events", f"--namespace={NAMESPACE}", f"--for=profiledjob/{JOB}")
    eventually(lambda: "TraceCaptured" in site.kubectl(*events), lambda: site.kubectl(*events))
    time.sleep(5)
    assert site.status() == trace, "it is not taken again"
    assert site.running() == before


def test_hostile_values_are_refused_once(site: Site) -> None:
    for value in ("../../etc/passwd", "x" * 100_000, 'a"; rm -rf /', "now:-1"):
        site.kubectl("annotate", "profiledjob", JOB, f"--namespace={NAMESPACE}", f"{ANNOTATION_TRACE}-")
        taken = site.status()["id"]
        site.annotate(f"{ANNOTATION_TRACE}={value}")
        eventually(lambda taken=taken: site.status()["id"] != taken, lambda: str(site.status()))  # type: ignore[misc]
        trace = site.status()
        assert (trace["state"], trace["reason"]) == ("Failed", "InvalidRequest"), trace
        assert trace["id"].startswith("invalid-") and len(json.dumps(trace)) < 1000


def test_the_command_writes_the_file(site: Site) -> None:
    reader, before = site.user("reader"), site.running()
    packed, plain = site.folder / "trace.json.gz", site.folder / "trace.json"
    code, out, err = site.trace(JOB, "-o", str(packed), user=reader)
    assert code == 0, err
    assert "WHAT THE TIME GOES TO" in out and "as fast" in out and "aten::addmm" in out, out
    assert hashlib.sha256(packed.read_bytes()).hexdigest() == site.status()["sha256"]
    code, out, err = site.trace(JOB, "--summary", "-o", str(plain), user=reader)
    assert code == 0 and f"wrote {plain}" in out, err
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    events = json.loads(plain.read_text())["traceEvents"]
    assert sum(event["name"].startswith("Optimizer.step#") for event in events) == steps_of(site.status())
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")
    assert list(site.folder.glob(".trace*")) == [], "nothing half written is left"
    assert site.running() == before


def test_who_may_not_run_commands_in_pods_gets_the_summary_and_no_file(site: Site) -> None:
    asker = site.user("asker")
    file = site.folder / "refused.json"
    code, out, err = site.trace(JOB, "--summary", "-o", str(file), user=asker)
    assert code == 1 and "WHAT THE TIME GOES TO" in out
    assert err == (
        "rightpool trace: the file can't be read: you may not run commands in pods of namespace prod "
        "(create and get pods/exec)\n"
    )
    assert not file.exists()


def test_all_ranks_of_a_job(site: Site) -> None:
    before, folder = site.running(), site.folder / "ranks"
    code, out, err = site.trace(JOB, "--all", "-o", str(folder), user=site.user("lister"))
    assert code == 0 and "traced 1 of 1 rank, in 1 pod\n" in out and f"wrote 1 file to {folder}" in out, err
    trace = site.status()
    assert "rank" not in trace and trace["ranks"]["captured"] == 1 and "straggler" not in trace["ranks"], trace
    assert [part["part"] for part in trace["ranks"]["parts"]] == [part["part"] for part in trace["summary"]["parts"]]
    (file,) = folder.iterdir()
    assert file.name == "rank-0.pt.trace.json.gz"
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    assert sum(event["name"].startswith("Optimizer.step#") for event in events) == steps_of(trace)
    code, out, err = site.trace(JOB, "--summary", "-o", str(site.folder / "more"), user=site.user("reader"))
    assert code == 1 and "WHAT THE TIME OF THE RANKS GOES TO" in out
    assert err.endswith("you may not list pods of namespace prod (list pods)\n"), err
    assert not (site.folder / "more").exists()
    assert site.running() == before


def test_a_rank_that_is_not_there(site: Site) -> None:
    code, _, err = site.trace(JOB, "--rank", "7", user=site.user("reader"))
    assert code == 1 and err.endswith("there is no trace (NoRank): no process of the job has rank 7\n"), err


def test_an_operator_that_is_killed_in_the_middle(site: Site) -> None:
    """The request is served, or fails with a reason, and is over."""
    before, leader = site.running(), site.release.leader()
    site.annotate(f"{ANNOTATION_TRACE}=restart")
    eventually(lambda: site.status().get("id") == "restart", lambda: str(site.status()))
    site.kubectl("delete", "pod", leader, "--namespace=rightpool-system", "--force", "--grace-period=0")
    trace = site.over("restart")
    assert trace["state"] == "Captured" or trace["reason"], trace
    assert site.running() == before


def test_a_sidecar_that_is_killed_in_the_middle(site: Site) -> None:
    site.annotate(f"{ANNOTATION_TRACE}=killed")
    eventually(lambda: site.status().get("id") == "killed", lambda: str(site.status()))
    pod = site.running()[0].partition("/")[0]
    site.kill_sidecar(pod)
    eventually(lambda: site.sidecar_restarts(pod) > 0, lambda: str(site.running()))
    trace = site.over("killed")
    assert trace["state"] == "Captured" or trace["reason"], trace
    assert site.running() == [f"{pod}/0"], "the program runs on"


def test_an_interrupt_ends_the_command_quietly(site: Site) -> None:
    process = site.start(JOB, user=site.user("reader"))
    assert process.stderr is not None
    assert process.stderr.readline() == "asked the operator\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=3 * PATIENCE)
    assert process.returncode == 130 and "Traceback" not in err, err
    job = site.kubectl.json("get", "profiledjob", JOB, f"--namespace={NAMESPACE}")
    assert site.over(job["metadata"]["annotations"][ANNOTATION_TRACE])["state"] == "Captured", (
        "it is served all the same"
    )


def test_a_pod_that_is_gone(site: Site) -> None:
    """Its trace is gone with it, and the summary stays."""
    assert site.status()["state"] == "Captured"
    pod = site.status()["pod"]
    site.kubectl("delete", "pod", pod, f"--namespace={NAMESPACE}", "--force", "--grace-period=0")
    code, out, err = site.trace(JOB, "--summary", "-o", str(site.folder / "gone.json"), user=site.user("reader"))
    assert code == 1 and "WHAT THE TIME GOES TO" in out
    assert err == f"rightpool trace: pod {pod} is gone, and the file with it: take another trace\n", err


def test_two_pods_and_which_one_holds_up_the_other(site: Site) -> None:
    """Last, since it takes the place of the other job."""
    where = f"--namespace={NAMESPACE}"
    site.kubectl("delete", "profiledjob", JOB, where)
    site.kubectl.apply([_job(site.release, PAIR, _PAIR, replicas=2)])
    try:
        eventually(lambda: site.training(PAIR, 2), lambda: site.release.operators())
        folder = site.folder / "pair"
        code, out, err = site.trace(PAIR, "--all", "-o", str(folder), user=site.user("lister"))
        assert code == 0 and "traced 2 of 2 ranks, in 2 pods\nrank 1 holds up the others" in out, f"{out}\n{err}"
        trace = site.status(PAIR)
        ranks = trace["ranks"]
        assert (ranks["captured"], ranks["failed"], ranks["program"], ranks["straggler"]) == (2, 0, 2, 1), trace
        assert len(json.dumps(trace)) < 8000
        names = [f"rank-{rank}.pt.trace.json.gz" for rank in range(2)]
        assert sorted(path.name for path in folder.iterdir()) == names
        for name in names:
            events = json.loads(gzip.decompress((folder / name).read_bytes()))["traceEvents"]
            assert any(event["name"] == "gloo:all_reduce" for event in events)
        assert [one.endswith("/0") for one in site.running(PAIR)] == [True, True], "the programs run on"
    finally:
        site.kubectl("delete", "profiledjob", PAIR, where)
