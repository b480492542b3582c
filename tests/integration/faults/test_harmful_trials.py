"""Programs that do harm where they are tried: in real pods, while their jobs run on in simulated ones.

The program would write to the job's checkpoint, take all memory, fork, not end, or end at once. Each trial ends by
itself with why, its chips are free again, and no other follows.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from devcluster import deps, recipes
from devcluster.cluster import Running
from devcluster.kubectl import Kubectl
from devcluster.progress import Progress
from devcluster.spec import DEV_CHIP_RESOURCE, DEV_CHIPS, NODE_NAME, REPLAY_PORT
from rightpool.api.kubernetes import JOBS
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import ACCELERATOR_POOLS, PODS
from tests.integration.faults.conftest import put
from tests.integration.faults.fleet import A100, POOLS, SIMULATION, Body
from tests.integration.faults.site import Site
from tests.integration.runtime.test_crash import events
from tests.patience import eventually

pytestmark = pytest.mark.cluster

REAL: Final = "faults-real"
CHIPS: Final = 40
CHECKPOINT: Final = bytes(range(256)) * 64


class Harm(NamedTuple):
    """A program, and what is heard of it."""

    program: str
    why: str
    """A pattern."""

    volumes: str = "ReadOnly"


_STAY: Final = "signal.pause()"
HARMS: Final = {
    "writes": Harm(
        "attempts = [lambda: open(ckpt, 'wb').write(b'x'), lambda: open(ckpt, 'r+b').truncate(), "
        "lambda: os.unlink(ckpt), lambda: os.rename(ckpt, ckpt + '2'), lambda: os.chmod(ckpt, 0), "
        "lambda: os.symlink('/', '/ckpt/link')]\n"
        "for attempt in attempts:\n"
        "    try: attempt()\n"
        "    except OSError: pass\n"
        "    else: sys.exit(9)\n"
        "sys.exit(7)",
        r"exited with 7",
    ),
    "eats": Harm("held = []\nwhile True: held.append(bytearray(b'x') * (4 << 20))", r"exited with 137 \(OOMKilled\)"),
    "hangs": Harm(_STAY, r"was not measured within \d+ s"),
    "forks": Harm(
        f"for _ in range(40):\n    if os.fork() == 0:\n        os.setsid()\n        {_STAY}\n{_STAY}",
        r"was not measured within \d+ s",
    ),
    "deaf": Harm(
        f"for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)\nwhile True: {_STAY}",
        r"was not measured within \d+ s",
    ),
    "fills": Harm(
        f"with open('/ckpt/more', 'wb') as file:\n    for _ in range(32): file.write(bytes(4 << 20))\n{_STAY}",
        # The kubelet looks at volumes once a minute; what it has evicted may be seen to end first.
        r"ephemeral|exited with 137|was not measured",
        "Scratch",
    ),
    "done": Harm("sys.exit(0)", r"ended with 0 before"),
    "fails": Harm("sys.exit(1)", r"exited with 1"),
}


@pytest.fixture(scope="module")
def image(own_cluster: Running, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The profiler's. Its Python runs the programs, too."""
    if deps.missing(root=True):
        pytest.skip("real pods need the packages of `python -m devcluster deps`")
    built = recipes.build_all(("profiler",), tmp_path_factory.mktemp("images"), Progress(quiet=True))["profiler"]
    own_cluster.load_images(built.archive)
    return f"{recipes.REGISTRY}rightpool/profiler@{built.digest}"


@pytest.fixture
def machine(client: ClusterClient, kubeconfig: Path, machines: None) -> Iterator[None]:
    """A pool of the node that runs real containers, whose processors count as A10Gs."""
    kubectl = Kubectl(kubeconfig)

    def has(chips: int) -> None:
        room = {DEV_CHIP_RESOURCE: str(chips)}
        patch = json.dumps({"status": {"capacity": room, "allocatable": room}})
        kubectl("patch", "node", NODE_NAME, "--subresource=status", "--type=merge", f"--patch={patch}")

    has(CHIPS)
    spec = {
        "accelerator": "A10G-24GB",
        "chipsPerNode": CHIPS,
        "resourceName": DEV_CHIP_RESOURCE,
        "nodeSelector": {"kubernetes.io/hostname": NODE_NAME},
        "price": POOLS["faults-fair"]["price"],
    }
    put(client, ACCELERATOR_POOLS, REAL, {"spec": spec})
    yield
    client.delete(ACCELERATOR_POOLS, REAL)
    has(DEV_CHIPS)


def template(program: str, image: str, saved: Path) -> Body:
    """Pods that run it as root, with the checkpoint to write to, and take long to end."""
    head = "import os, signal, sys\nckpt = '/ckpt/model.bin'\n"
    played = {"workload": "resnet50", "warm-up": "0s", "start-delay": "200ms", "stop-delay": "200ms"}
    container = {
        "name": "trainer",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", head + program],
        "securityContext": {"runAsUser": 0},
        "resources": {"limits": {"memory": "128Mi", "cpu": "200m", "ephemeral-storage": "64Mi"}},
        "volumeMounts": [{"name": "saved", "mountPath": "/ckpt"}],
    }
    return {
        "metadata": {"annotations": {SIMULATION + key: value for key, value in played.items()}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 3600,
            "containers": [container],
            "volumes": [{"name": "saved", "hostPath": {"path": str(saved)}}],
        },
    }


def steps(pod: Body) -> float:
    """That the simulation has made."""
    url = f"http://{pod['status']['podIP']}:{REPLAY_PORT}/metrics"
    with urllib.request.urlopen(url, timeout=30) as answer:
        found = re.search(r"^rightpool_steps_total\S* (\S+)$", answer.read().decode(), re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_no_trial_does_harm_that_outlives_it(
    site: Site, machine: None, image: str, client: ClusterClient, tmp_path: Path
) -> None:
    site.operate(RIGHTPOOL_SIDECAR_IMAGE=image)
    tenant = site.tenant
    for name, harm in HARMS.items():
        (folder := tmp_path / name).mkdir()
        (folder / "model.bin").write_bytes(CHECKPOINT)
        tenant.train(
            name,
            template=template(harm.program, image, folder),
            trial={"duration": "4s", "volumes": harm.volumes},
            placement={"pools": {"allow": [A100, REAL]}},
        )
    for name in HARMS:
        eventually(lambda name=name: tenant.status(name).get("trials"), f"{name} is tried")  # type: ignore[misc]
    before = {name: tenant.pods(name)[0] for name in HARMS}
    made = {name: steps(pod) for name, pod in before.items()}

    def why(name: str) -> str:
        return "; ".join(event["message"] for event in events(tenant, name) if event["reason"] == "TrialFailed")

    for name, harm in HARMS.items():
        eventually(lambda name=name: why(name), f"the trial of {name} has ended with why")  # type: ignore[misc]
        assert re.search(harm.why, why(name)), (name, why(name))
    eventually(lambda: not on_node(client, site), "the chips are free")
    for name, pod in before.items():
        assert (tmp_path / name / "model.bin").read_bytes() == CHECKPOINT, f"{name} has changed the checkpoint"
        assert [path.name for path in (tmp_path / name).iterdir()] == ["model.bin"]
        assert [now["metadata"]["uid"] for now in tenant.pods(name)] == [pod["metadata"]["uid"]], "the job runs on"
        eventually(lambda name=name, pod=pod: steps(pod) > made[name], f"{name} makes steps")  # type: ignore[misc]
        status = tenant.status(name)
        assert (status["trials"], "trial" in status, status["placement"]["pool"]) == (1, False, A100)
    names = {job["metadata"]["name"] for job in client.list_all(JOBS, site.namespace)}
    assert names == {f"{name}-r1" for name in HARMS}, "nothing is left of a trial"


def on_node(client: ClusterClient, site: Site) -> list[str]:
    """Pods of trials that exist."""
    pods = client.list_all(PODS, site.namespace)
    return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName") == NODE_NAME]
