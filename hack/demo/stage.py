"""The stage: images in the cluster, the chart installed, pools and policy declared."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo.job import StoryFailed
from devcluster import build, recipes
from devcluster.cluster import Running
from devcluster.kubectl import Kubectl
from devcluster.progress import Progress
from devcluster.spec import cache_home

MANIFESTS: Final = Path(__file__).parent / "manifests"
SYSTEM: Final = "rightpool-system"
RELEASE: Final = "rightpool"


@dataclass(frozen=True)
class Stage:
    """A cluster with Rightpool in it."""

    kubectl: Kubectl
    kubeconfig: Path
    state: Path  # of the cluster, on this machine: where the real job's checkpoints lie

    def rightpool(self, *arguments: str) -> str:
        """The command line, as a user runs it."""
        environment = os.environ | {"KUBECONFIG": str(self.kubeconfig), "COLUMNS": "150"}
        result = run([sys.executable, "-m", "rightpool.cli.main", *arguments], env=environment)
        return result.stdout


def run(
    command: list[str], *, env: dict[str, str] | None = None, seconds: float = 600
) -> subprocess.CompletedProcess[str]:
    """A program's output; raises StoryFailed with what it said where it fails."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=env)
    if result.returncode != 0:
        raise StoryFailed(f"{' '.join(command[:4])}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    return result


def prepare(running: Running, progress: Progress) -> Stage:
    """Images, chart, policy, pools. Repeating it upgrades the release and changes nothing else."""
    kubectl = running.kubectl
    folder = cache_home() / "images" / "built"
    built = recipes.build_all([recipe.short for recipe in recipes.RECIPES], folder, progress)
    progress.say("loading the images into the node")
    running.load_images(*(image.archive for image in built.values()))
    progress.say("installing the chart with helm")
    chart = recipes.ROOT / "charts" / "rightpool"
    values = [
        "--set",
        "planner.interval=2",
        "--set",
        f"prometheus.url={running.prometheus_url},prometheus.scrapeInterval=2",
        "--set",
        "log.format=text",
        # By digest: the tag stays the same while one works on the code, and would not make new pods.
        "--values",
        str(folder / recipes.VALUES),
    ]
    run(
        [
            *(build.binary("helm"), "upgrade", "--install", RELEASE, str(chart)),
            *("--namespace", SYSTEM, "--create-namespace", "--kubeconfig", str(running.kubeconfig)),
            # CRDs that were applied by hand before become the chart's.
            *("--take-ownership", "--wait", "--timeout", "400s", *values),
        ]
    )
    # A policy or a pool that somebody changed by hand becomes the demo's.
    kubectl("apply", "--server-side", "--force-conflicts", "-f", str(MANIFESTS / "pools.yaml"))
    progress.say("the operator runs; waiting for it to see the pools")
    deadline = time.monotonic() + 240
    while "a100" not in kubectl(
        "get", "acceleratorpools", "-o", "jsonpath={range .items[?(@.status.chips.total>0)]}{.metadata.name} {end}"
    ):
        if time.monotonic() > deadline:
            raise StoryFailed("the operator reported no chips of pool a100 within 4 minutes\n" + logs(kubectl))
        time.sleep(1)
    return Stage(kubectl, running.kubeconfig, running.spec.state)


def apply(stage: Stage, manifest: str, **replacements: str) -> None:
    """Apply a manifest of the demo; its namespaces are made first."""
    text = (MANIFESTS / manifest).read_text()
    for name, value in replacements.items():
        text = text.replace(name, value)
    for line in text.splitlines():
        if ", namespace: " in line:
            namespace = line.rpartition(", namespace: ")[2].strip(" }")
            if f"name: {namespace}\n" not in text:
                namespace_object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
                stage.kubectl.apply([namespace_object])
    stage.kubectl("apply", "--server-side", "--force-conflicts", "-f-", stdin=text)


def forget(stage: Stage, namespace: str, name: str) -> None:
    """End what an earlier run left, so that its status is not taken for this one's."""
    stage.kubectl("delete", "profiledjob", name, "-n", namespace, "--ignore-not-found", "--cascade=foreground")
    stage.kubectl("delete", "events.events.k8s.io", "--all", "-n", namespace)


def logs(kubectl: Kubectl, lines: int = 40) -> str:
    """The operator's last lines, for a failure's message."""
    return kubectl("logs", "-n", SYSTEM, "-l", "app.kubernetes.io/name=rightpool", "--prefix", f"--tail={lines}")
