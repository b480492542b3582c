"""Has the operator move real programs between real NVIDIA chips and shares of them, and prints what came of it.

    PYTHONPATH=operator:profiler_sidecar:hack:. python -m tests.gpu.check_moves --json FILE

It starts the devcluster, has its node offer each chip whole, by half and by a quarter (NVIDIA MPS), installs the chart,
and lets ProfiledJobs run one after another on each chip, the chips side by side. Each job begins where it should not
stay. Exits 1 if a move does not come, comes out otherwise than expected, or a program does not go on from where it was;
2 without a GPU. It needs root, about 4 minutes for the cluster, and 2 minutes for each job of a chip. With one chip it
leaves out the jobs that need two.

Programs run from this machine's own files (`--host-root`), by its own Python (`--python`) with PyTorch and JAX. So
their pods are not `restricted`; the injected sidecar and agent are those of any pod.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from demo import stage as demo
from demo.job import Job, StoryFailed, Watcher
from devcluster import cluster as clusters
from devcluster import gpu
from devcluster.node import PAUSE_IMAGE
from devcluster.progress import Progress
from devcluster.spec import DevclusterError, named
from tests.gpu.machine import NO_GPU
from tests.gpu.move_pools import CASES, CHIPS, PRICE_LISTS, Case, chip_of, offers, pair_document, pool_documents
from tests.gpu.move_results import Result, moves_of, result, shows_loss, table

ROOT: Final = Path(__file__).resolve().parents[2]
NAMESPACE: Final = "real-gpus"
PLACED_SECONDS: Final = 150.0
MOVE_SECONDS: Final = 300.0


@dataclass(frozen=True)
class Machine:
    """Where programs find their files. root: folder that holds this machine's /usr and so on."""

    root: Path
    python: Path
    mounted: tuple[str, ...]
    work: Path

    def job(self, case: Case, folder: Path) -> dict[str, Any]:
        """The ProfiledJob of a case. folder: on this machine, for its checkpoints."""
        program = [str(ROOT / "tests" / "gpu" / "moving_program.py"), case.program, "/ckpt"]
        command = [str(self.python), *program]
        if case.sizes is not None:
            command = [str(self.python), "-m", "torch.distributed.run", *program]
        mounts = {str(path): str(self.root / path.lstrip("/")) for path in self.mounted}
        mounts |= {str(ROOT): str(ROOT), "/ckpt": str(folder)}
        chips = 1 if case.sizes is None else case.sizes[0]
        spec: dict[str, Any] = {
            "workload": {
                "job": {
                    "chipsPerReplica": chips,
                    "template": {
                        "spec": {
                            "terminationGracePeriodSeconds": 5,
                            "securityContext": {"runAsUser": 1000, "runAsGroup": 1000},
                            "containers": [
                                {
                                    "name": "trainer",
                                    "image": PAUSE_IMAGE,
                                    "imagePullPolicy": "Never",
                                    "command": command,
                                    "env": [
                                        {"name": name, "value": value} for name, value in self._environment().items()
                                    ],
                                    "volumeMounts": [
                                        {"name": f"v{number}", "mountPath": path, "readOnly": path != "/ckpt"}
                                        for number, path in enumerate(mounts)
                                    ]
                                    + [{"name": "tmp", "mountPath": "/tmp"}],
                                }
                            ],
                            "volumes": [
                                {"name": f"v{number}", "hostPath": {"path": path}}
                                for number, path in enumerate(mounts.values())
                            ]
                            + [{"name": "tmp", "emptyDir": {}}],
                        }
                    },
                }
            },
            "placement": {"pools": {"allow": [f"{pool}-{case.price_list}" for pool in case.pools]}},
            "checkpoint": {"mode": "Signal", "signal": "SIGUSR1", "path": "/ckpt", "timeout": "60s"},
            "profiling": {"interval": "1s", "window": "15s"},
            "adaptation": {"mode": "Auto", "cooldown": "10m"},
        }
        if case.sizes is not None:
            spec["elasticity"] = {
                "minChips": min(case.sizes),
                "maxChips": max(case.sizes),
                "batch": "PerChip",
                "state": "Replicated",
            }
        return {
            "apiVersion": "rightpool.dev/v1alpha1",
            "kind": "ProfiledJob",
            "metadata": {"name": case.name, "namespace": NAMESPACE},
            "spec": spec,
        }

    def _environment(self) -> dict[str, str]:
        return {
            "HOME": "/ckpt",
            "PATH": f"{self.python.parent}:/usr/local/nvidia/bin:/usr/bin:/bin",
            "LD_LIBRARY_PATH": "/usr/local/nvidia/lib64:/usr/local/nvidia/lib",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": "",  # the agent is found by it in a virtual environment, too
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            # NVLink multicast reaches beyond the chips of a pod.
            "NCCL_NVLS_ENABLE": "0",
            "NVSHMEM_DISABLE_NVLS": "1",
            "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
        }


class Lane:
    """The cases of one chip, one after another: two programs on one chip would measure each other."""

    def __init__(self, stage: demo.Stage, machine: Machine, cases: Sequence[Case], progress: Progress) -> None:
        self._stage, self._machine, self._cases, self._progress = stage, machine, cases, progress
        self.results: list[Result] = []
        self.failures: list[str] = []

    def run(self) -> None:
        """Fills `results` and `failures`."""
        for case in self._cases:
            try:
                self.results.append(self._run(case))
                self._progress.say(table(self.results[-1:]).splitlines()[-1])
            except StoryFailed as error:
                self.failures.append(f"{case.name}: {error}\n{self._logs(case)[-1500:]}")
                self._progress.say(self.failures[-1])
            finally:
                self._delete(case)

    def _run(self, case: Case) -> Result:
        kubectl = self._stage.kubectl
        folder = self._machine.work / case.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        folder.chmod(0o777)
        document = self._machine.job(case, folder)
        kubectl.apply([document])
        watcher = Watcher(self._stage.kubeconfig, NAMESPACE, case.name, self._progress.say)
        job = watcher.until("it runs", lambda j: j.condition("Placed").get("status") == "True", PLACED_SECONDS)
        if case.deadline:
            job = watcher.until("it is measured", lambda j: rate_of(j) > 0, MOVE_SECONDS)
            # Half as much again as it does until then where it runs.
            document["spec"]["targets"] = {"deadline": _in_seconds(600)}
            document["spec"]["progress"] = {"totalSamples": int(rate_of(job) * 600 * 1.5)}
            kubectl.apply([document])
        logged = ""
        deadline = time.monotonic() + MOVE_SECONDS
        while (job := watcher.read()).phase is None and not moves_of(job):
            if time.monotonic() > deadline:
                raise StoryFailed(f"no move within {MOVE_SECONDS:.0f} s\n{job.conditions_text()}")
            logged = self._logs(case) or logged
            time.sleep(1)
        profile = dict(job.status.get("profile") or {})
        job = watcher.until("the move is judged", lambda j: j.phase is None and bool(moves_of(j)), MOVE_SECONDS)
        deadline = time.monotonic() + PLACED_SECONDS
        while not shows_loss(after := self._logs(case)) and time.monotonic() < deadline:
            time.sleep(1)
        return result(case, profile, moves_of(job)[-1], logged, after)

    def _delete(self, case: Case) -> None:
        """Without its pods' end the next program would share the chip. What its moves taught the operator remains."""
        self._stage.kubectl(
            *("delete", "profiledjob", case.name, "-n", NAMESPACE, "--ignore-not-found", "--cascade=foreground")
        )

    def _logs(self, case: Case) -> str:
        selected = f"rightpool.dev/profiledjob={case.name}"
        try:
            return self._stage.kubectl(
                *("logs", "-n", NAMESPACE, "-l", selected, "-c", "trainer", "--tail=-1", "--prefix=false")
            )
        except DevclusterError as error:
            return f"{error}"


def _in_seconds(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def rate_of(job: Job) -> float:
    """Samples a second that the profile has; 0.0 where it has none yet."""
    return float((job.status.get("profile") or {}).get("samplesPerSecond") or 0.0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host-root", type=Path, default=Path("/"), help="folder with the machine's own files")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="a Python with PyTorch and JAX")
    parser.add_argument(
        "--mount",
        nargs="*",
        default=["/usr", "/lib", "/lib64", "/bin", "/etc", "/opt"],
        help="what programs need of it",
    )
    parser.add_argument("--work", type=Path, default=Path("/var/tmp/rightpool-moves"), help="folder for checkpoints")
    parser.add_argument("--only", nargs="*", default=[], choices=[[], *(case.name for case in CASES)])
    parser.add_argument("--json", type=Path, help="where to write the results too")
    return parser.parse_args()


def _model() -> tuple[str, int]:
    """Of the machine's chips, and how many there are."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return "", 0
    model = next((model for model in CHIPS if all(model in line for line in listed)), "")
    return model, len(listed)


def main() -> int:
    """The exit status."""
    options = _arguments()
    model, chips = _model()
    if not model or not chips:
        print(f"this needs NVIDIA chips of one of {', '.join(CHIPS)}, as nvidia-smi -L lists them", file=sys.stderr)
        return NO_GPU
    cases = [case for case in CASES if case.name in (options.only or [case.name]) and (case.sizes is None or chips > 1)]
    progress = Progress()
    running = clusters.up(named("demo"), progress)
    gpu.up(running.spec, offers(chips), progress)
    stage = demo.install(running, progress, ["operator", "profiler"])
    documents: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "rightpool.dev/v1alpha1",
            "kind": "PlacementPolicy",
            "metadata": {"name": "default"},
            # One program after another is moved here, to pools that are made to disappoint.
            "spec": {
                "minRunTime": "10s",
                "startDeadline": "90s",
                "maxMovesPerHour": 1000,
                "circuitBreaker": {"maxRolledBackShare": "1"},
            },
        },
    ]
    for number in range(PRICE_LISTS):
        documents += pool_documents(number, model)
    if chips > 1:
        documents.append(pair_document(chips, model))
    stage.kubectl.apply(documents)
    machine = Machine(options.host_root, options.python, tuple(options.mount), options.work)
    results, failures = [], []
    alone = [case for case in cases if case.sizes is not None]
    single = [case for case in cases if case.sizes is None]
    for together in ([[c for c in single if chip_of(c.price_list, chips) == chip] for chip in range(chips)], [alone]):
        lanes = [Lane(stage, machine, those, progress) for those in together if those]
        threads = [threading.Thread(target=lane.run) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        results += [one for lane in lanes for one in lane.results]
        failures += [one for lane in lanes for one in lane.failures]
    if options.json is not None:
        options.json.write_text(json.dumps([dataclasses.asdict(one) for one in results], indent=1))
    print(table(results))
    if kept := [one.error for one in results if one.outcome == "Verified"]:
        print(f"{len(results)} moves; median error {statistics.median(kept):.1%} of those that were kept")
    for failure in failures:
        print(failure)
    return 1 if failures or any(one.complaint for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())
