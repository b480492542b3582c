"""Set-up of the demo: load the images, install the chart, declare pools and policy."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo import past, triton
from demo.job import StoryFailed, Tells, Watcher
from demo.plain import plainly
from devcluster import build, kinds, recipes
from devcluster.cluster import Running
from devcluster.kubectl import Kubectl
from devcluster.progress import Progress
from devcluster.spec import cache_home

MANIFESTS: Final = Path(__file__).parent / "manifests"
SYSTEM: Final = "rightpool-system"
RELEASE: Final = "rightpool"
IMAGES: Final = ("operator", "profiler", "example-training")
"""Those that the stories run."""


@dataclass(frozen=True)
class Stage:
    """A cluster with Rightpool installed."""

    kubectl: Kubectl
    kubeconfig: Path
    state: Path  # folder on this machine with the real job's checkpoints
    tells: Tells = plainly
    prometheus: str = ""  # its address

    def watch(self, namespace: str, name: str, say: Callable[[str], None]) -> Watcher:
        """Say what happens to a job."""
        return Watcher(self.kubeconfig, namespace, name, say, self.tells)

    def rightpool(self, *arguments: str) -> str:
        """Run the command line as a user does."""
        environment = os.environ | {"KUBECONFIG": str(self.kubeconfig), "COLUMNS": "150"}
        result = run([sys.executable, "-m", "rightpool.cli.main", *arguments], env=environment)
        return result.stdout


def run(
    command: list[str], *, env: dict[str, str] | None = None, seconds: float = 1800
) -> subprocess.CompletedProcess[str]:
    """Run a program and return its output. Raises StoryFailed with its error output."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=env)
    if result.returncode != 0:
        raise StoryFailed(f"{' '.join(command[:4])}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    return result


def install(running: Running, progress: Progress, images: Collection[str]) -> Stage:
    """Load these of the project's images and install the chart. Repeating it only upgrades the release."""
    folder = cache_home() / "images" / "built"
    built = recipes.build_all(images, folder, progress)
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
        # By digest, because the tag does not change during development and would not lead to new pods.
        "--values",
        str(folder / recipes.VALUES),
    ]
    run(
        [
            *(build.binary("helm"), "upgrade", "--install", RELEASE, str(chart)),
            *("--namespace", SYSTEM, "--create-namespace", "--kubeconfig", str(running.kubeconfig)),
            # The chart takes over CRDs that were applied by hand.
            *("--take-ownership", "--wait", "--timeout", "900s", *values),
        ]
    )
    return Stage(running.kubectl, running.kubeconfig, running.spec.state, prometheus=running.prometheus_url)


def prepare(running: Running, progress: Progress) -> Stage:
    """Install JobSet, images, chart, policy and pools."""
    if not past.remembered(running.prometheus_url):  # a second time they would be added to those of an earlier run
        past.put(running.spec.state / "prometheus" / "data", time.time())
    kinds.up(kinds.JOBSET, running.spec, progress)
    stage = install(running, progress, IMAGES)
    running.load_images(triton.build(cache_home() / "images" / "built", progress))
    kubectl = stage.kubectl
    # The demo takes over a policy or pool that was changed by hand.
    kubectl("apply", "--server-side", "--force-conflicts", "-f", str(MANIFESTS / "pools.yaml"))
    progress.say("the operator runs; waiting for it to see the pools")
    deadline = time.monotonic() + 900
    while "a100" not in kubectl(
        "get", "acceleratorpools", "-o", "jsonpath={range .items[?(@.status.chips.total>0)]}{.metadata.name} {end}"
    ):
        if time.monotonic() > deadline:
            raise StoryFailed("the operator reported no chips of pool a100 within 15 minutes\n" + logs(kubectl))
        time.sleep(1)
    return stage


def apply(stage: Stage, manifest: str, **replacements: str) -> None:
    """Apply a manifest of the demo, after its namespaces."""
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


def forget(stage: Stage, namespace: str) -> None:
    """Delete the jobs of an earlier run, and JobSets that they have adopted.

    Their statuses would be mistaken for new ones, and their moves have taught the operator what the pools deliver.
    """
    if not stage.kubectl("get", "namespace", namespace, "--ignore-not-found", "--output=name"):
        return
    stage.kubectl("delete", "jobsets", "--all", "-n", namespace, "--cascade=foreground")
    stage.kubectl("delete", "profiledjobs", "--all", "-n", namespace, "--cascade=foreground")
    stage.kubectl("delete", "events", "--all", "-n", namespace)


def logs(kubectl: Kubectl, lines: int = 40) -> str:
    """The last lines of the operator's log, for error messages."""
    return kubectl("logs", "-n", SYSTEM, "-l", "app.kubernetes.io/name=rightpool", "--prefix", f"--tail={lines}")
