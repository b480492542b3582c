"""Programs in real pods are moved and resized where they are, and go on from what they saved.

One machine runs them. It is of the pool whose label it has, and comes to the other one as an autoscaler brings it
there: when pods wait for it. PyTorch and JAX are in no image here: the pods mount this machine's packages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

import pytest

from devcluster import recipes
from devcluster.cluster import Running
from devcluster.kubectl import Kubectl
from devcluster.progress import Progress
from devcluster.recipes import ROOT
from devcluster.spec import DEV_CHIP_RESOURCE, DEV_CHIPS, NODE_NAME
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import ACCELERATOR_POOLS, EVENTS, POD_TEMPLATES, SERVICES
from rightpool.contract import SIDECAR_CONTAINER
from tests.integration.faults.conftest import put
from tests.integration.faults.fleet import NODE_LABEL, Body
from tests.integration.faults.site import Site
from tests.integration.kinds import train_torch
from tests.integration.kinds.test_in_place import STEP, Mine, train_job
from tests.patience import eventually

pytestmark = pytest.mark.cluster

HERE, THERE = "kinds-here", "kinds-there"
CHIPS: Final = 4
_PACKAGES: Final = Path(pytest.__file__).parents[1]
_SMALL: Final = ["--rows=4096", "--width=16", "--batch=64", "--learning-rate=0.1", "--save-every=7"]
_PROGRAMS: Final = {
    "torch": (Path(train_torch.__file__), ["-m", "torch.distributed.run", "/program.py"]),
    "jax": (ROOT / "examples" / "training" / "train_jax.py", ["/program.py", *_SMALL]),
}
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_RANK: Final = {"fieldRef": {"fieldPath": f"metadata.annotations['{_INDEX}']"}}


class Run(NamedTuple):
    """What a program has printed since its start."""

    processes: int
    since: int
    """The step that it went on from."""

    losses: list[float]
    saves: int

    @property
    def first(self) -> float:
        """Its loss after its start: of three steps, since that of one step varies."""
        return fmean(self.losses[:3])

    @property
    def last(self) -> float:
        return fmean(self.losses[-3:])


class Machine:
    """The node that runs programs."""

    def __init__(self, kubectl: Kubectl, image: str) -> None:
        self.kubectl, self.image = kubectl, image

    def belongs_to(self, pool: str) -> None:
        self.kubectl("label", "node", NODE_NAME, f"{NODE_LABEL}={pool}", "--overwrite")

    def has(self, chips: int) -> None:
        room = {DEV_CHIP_RESOURCE: str(chips)}
        patch = json.dumps({"status": {"capacity": room, "allocatable": room}})
        self.kubectl("patch", "node", NODE_NAME, "--subresource=status", "--type=merge", f"--patch={patch}")


@pytest.fixture(scope="session")
def image(own_cluster: Running, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The profiler's. Its Python runs the programs, too."""
    folder = tmp_path_factory.mktemp("images")
    built = recipes.build_all(("profiler",), folder, Progress(quiet=True))["profiler"]
    own_cluster.load_images(built.archive)
    return f"{recipes.REGISTRY}rightpool/profiler@{built.digest}"


@pytest.fixture
def machine(client: ClusterClient, kubeconfig: Path, image: str) -> Iterator[Machine]:
    machine = Machine(Kubectl(kubeconfig), image)
    machine.has(CHIPS)
    machine.belongs_to(HERE)
    for pool in (HERE, THERE):
        spec = {
            "accelerator": "CPU",
            "chipsPerNode": CHIPS,
            "maxChips": CHIPS,
            "resourceName": DEV_CHIP_RESOURCE,
            "nodeSelector": {NODE_LABEL: pool},
            "price": {"perChipHour": "0.05"},
        }
        put(client, ACCELERATOR_POOLS, pool, {"spec": spec})
    yield machine
    for pool in (HERE, THERE):
        client.delete(ACCELERATOR_POOLS, pool)
    machine.kubectl("label", "node", NODE_NAME, f"{NODE_LABEL}-")
    machine.has(DEV_CHIPS)


def template(program: str, image: str, saved: Path, name: str = "main", **environment: Any) -> Body:
    """Pods of a program. environment: a value, or the field that it comes from."""
    path, arguments = _PROGRAMS[program]
    paths = {str(_PACKAGES): _PACKAGES, "/program.py": path, "/saved": saved}
    variables = {"PYTHONPATH": str(_PACKAGES), "CHECKPOINT_DIR": "/saved", **environment}
    container = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", *arguments],
        "env": [
            {"name": key, "valueFrom" if isinstance(value, dict) else "value": value}
            for key, value in variables.items()
        ],
        "resources": {"limits": {DEV_CHIP_RESOURCE: "1", "cpu": "300m"}},
        "securityContext": {"runAsUser": 0},
        "volumeMounts": [{"name": f"v{i}", "mountPath": target} for i, target in enumerate(paths)],
    }
    return {
        "spec": {
            "nodeSelector": {NODE_LABEL: HERE},
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 2,
            "containers": [container],
            "volumes": [{"name": f"v{i}", "hostPath": {"path": str(one)}} for i, one in enumerate(paths.values())],
        }
    }


class Training:
    """Somebody's object, and what its program says."""

    def __init__(self, one: Mine, machine: Machine) -> None:
        self.one, self.machine = one, machine

    def run(self) -> Run | None:
        """What the first process has printed; None before it trains."""
        pods = [pod for pod in self.one.pods() if pod["metadata"]["labels"].get(_INDEX) == "0"]
        if len(pods) != 1 or pods[0]["status"].get("phase") != "Running":
            return None
        container = next(one["name"] for one in pods[0]["spec"]["containers"])
        where = (f"--namespace={self.one.tenant.namespace}", f"--container={container}")
        text = self.machine.kubectl("logs", pods[0]["metadata"]["name"], *where)
        begun = re.search(r"^(\d+) process.* from step (\d+)$", text, re.MULTILINE)
        losses = [float(found) for found in re.findall(r"^step \d+ +loss ([\d.]+)", text, re.MULTILINE)]
        if begun is None or not losses:
            return None
        return Run(int(begun[1]), int(begun[2]), losses, len(re.findall("^saved", text, re.MULTILINE)))

    def trains(self, processes: int = 2) -> Run:
        """It has as many processes, and has saved since its start."""

        def seen() -> Run | None:
            run = self.run()
            return run if run and run.saves and len(run.losses) > 2 and run.processes == processes else None

        eventually(seen, lambda: f"{processes} processes train: {self.run()}")
        run = seen()
        assert run is not None
        return run

    def learns(self) -> Run:
        """Its loss is far below the first one, and saved."""
        first = self.trains()
        eventually(lambda: (run := self.run()) is not None and run.last < 0.8 * first.first, "it learns")
        saves = self.trains().saves
        eventually(lambda: (run := self.run()) is not None and run.saves > saves, "it saves")
        return first

    def gets_the_profiler(self, **spec: Any) -> Run:
        """Adopted, it is stopped and started by its user: new pods have it."""
        one, client = self.one, self.one.tenant.client
        one.adopt(checkpoint={"mode": "Signal", "timeout": "10m", "path": "/saved"}, **spec)
        eventually(lambda: client.list_all(POD_TEMPLATES, one.tenant.namespace), "what new pods get is written down")
        one.suspend(True)
        eventually(lambda: not one.pods(), "it is stopped")
        one.suspend(False)
        eventually(lambda: one.runs_on(HERE), "it is started")
        self.is_profiled()
        return self.trains()

    def is_profiled(self) -> None:
        for pod in self.one.pods():
            assert pod["spec"].get("initContainers", [{}])[0].get("name") == SIDECAR_CONTAINER, pod["metadata"]["name"]

    def ended_after_a_save(self, revision: int) -> None:
        tenant = self.one.tenant
        eventually(lambda: tenant.settled("llm"), "the move has ended")
        messages = [event["message"] for event in tenant.client.list_all(EVENTS, tenant.namespace)]
        assert any(f"r{revision} is ended after a save" in message for message in messages), messages
        self.is_profiled()

    def moves(self, pool: str, revision: int) -> None:
        self.one.send(pool)
        eventually(lambda: not any(pod["spec"].get("nodeName") for pod in self.one.pods()), "it is stopped")
        self.machine.belongs_to(pool)
        eventually(lambda: self.one.runs_on(pool) and self.one.placed(pool, revision), "it runs there")


def goes_on(first: Run, before: Run, after: Run) -> None:
    """It has learnt what it had learnt since its first step."""
    assert after.since > before.since
    assert after.first < 0.9 * first.first, (first, after)


def moved_and_back(training: Training) -> None:
    """It is asked to save before each move, by the profiler, which its pods have when they start anew."""
    one = training.one
    first = training.learns()
    assert first.since == 0
    runs = [first, training.gets_the_profiler()]
    for pool, revision in ((THERE, 2), (HERE, 3)):
        training.moves(pool, revision)
        runs.append(training.trains())
        training.ended_after_a_save(revision - 1)
    assert one.tenant.outcomes("llm") == ["Verified", "Verified"]
    for before, after in pairwise(runs):
        goes_on(first, before, after)
    assert one.untouched(), "its spec is what it was"


def indexed(pods: Body) -> Body:
    return {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": pods}


@pytest.mark.torch
@pytest.mark.usefixtures("trainer")
def test_a_train_job_of_two_torchruns_is_moved_and_moved_back(site: Site, machine: Machine, tmp_path: Path) -> None:
    site.operate(RIGHTPOOL_ADMITS_PROFILER="true", RIGHTPOOL_SIDECAR_IMAGE=machine.image)
    pods = template("torch", machine.image, tmp_path, name="node")
    job = train_job(pods)
    pods["spec"].pop("nodeSelector")
    step = {"name": "node", "template": {"metadata": {"labels": {STEP: "trainer"}}, "spec": {"template": pods}}}
    runs = {"mlPolicy": {"torch": {"numProcPerNode": 1}}, "template": {"spec": {"replicatedJobs": [step]}}}
    moved_and_back(Training(Mine(site, "trainJob", job, runs, HERE), machine))


@pytest.mark.jax
def test_a_job_set_of_two_jax_processes_is_moved_and_moved_back(site: Site, machine: Machine, tmp_path: Path) -> None:
    site.operate(RIGHTPOOL_ADMITS_PROFILER="true", RIGHTPOOL_SIDECAR_IMAGE=machine.image)
    found: Body = {
        "JAX_COORDINATOR_ADDRESS": "llm-workers-0-0.llm:8476",
        "JAX_NUM_PROCESSES": "2",
        "JAX_PROCESS_ID": _RANK,
    }
    pods = template("jax", machine.image, tmp_path, JAX_PLATFORMS="cpu", **found)
    role = {"name": "workers", "template": {"spec": indexed(pods)}}
    moved_and_back(Training(Mine(site, "jobSet", {"replicatedJobs": [role]}, pool=HERE), machine))


@pytest.mark.torch
def test_a_job_of_two_torchruns_becomes_one_of_three(site: Site, machine: Machine, tmp_path: Path) -> None:
    site.operate(RIGHTPOOL_ADMITS_PROFILER="true", RIGHTPOOL_SIDECAR_IMAGE=machine.image)
    about = {"name": "llm", "namespace": site.namespace}
    service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"job-name": "llm"}}
    site.tenant.client.create(SERVICES, {"metadata": about, "spec": service})
    found: Body = {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "1", "PET_NODE_RANK": _RANK, "PET_MASTER_ADDR": "llm-0.llm"}
    pods = template("torch", machine.image, tmp_path, PET_MASTER_PORT="29500", **found)
    pods["spec"]["subdomain"] = "llm"
    one = Mine(site, "job", indexed(pods), pool=HERE)
    training = Training(one, machine)
    first = training.learns()
    before = training.gets_the_profiler(elasticity={"chipCounts": [2]})
    goes_on(first, first, before)
    one.tenant.edit("llm", lambda spec: spec["elasticity"].update(chipCounts=[3]))
    eventually(lambda: one.runs_on(HERE, pods=3) and one.placed(HERE, 2), "it has three pods")
    goes_on(first, before, training.trains(processes=3))
    training.ended_after_a_save(1)
    assert one.body["metadata"]["uid"] == one.before["metadata"]["uid"]
    assert one.tenant.outcomes("llm") == ["Verified"]
