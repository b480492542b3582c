"""The known fleet: jobs that a real operator brings into known states, and a few whose status is written by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError, Conflict
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.workloads.names import workload_hash
from rightpool.workloads.pod_set import PodSet
from tests.integration.cli.truth.machines import (
    A10G,
    A100,
    FULL,
    GOLD,
    PRICES,
    SILENT,
    SIMULATION,
    Body,
    published_rate,
)
from tests.integration.runtime.harness import Fleet
from tests.patience import eventually

WINDOW: Final = "10s"
OUTPUT: Final = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'\n"
IMAGE_ERROR: Final = "image example.com/trainer:1 is not there"
BUDGET: Final = 100_000.0
"""Of a job that spends a dollar a second: more than it spends until it is asked about, less than its work costs."""
DAY_SAMPLES: Final = 10**9
"""Work of days on any pool here."""
TYPO: Final = "comand"
FAILURE: Final[Body] = {
    "backoffLimit": 4,
    "activeDeadlineSeconds": 86_400,
    "ttlSecondsAfterFinished": 86_400,
    "podFailurePolicy": {
        "rules": [
            {"action": "FailJob", "onExitCodes": {"containerName": "trainer", "operator": "In", "values": [3]}},
        ]
    },
}
"""Of `failed`, whose program ends with exit code 3."""


@dataclass(frozen=True)
class Known:
    """What is true of a job, by how it was made."""

    state: str
    """The word for it."""
    pool: str | None = None
    """Where it is placed; None where it is not."""
    chips: int = 0
    """Chips that its pods hold."""
    measured: bool = False
    """Whether its rate is known."""
    targets: str | None = None
    """The reason of TargetsMet; None where none are declared, or the job was not looked at."""

    @property
    def price(self) -> float | None:
        """Dollars an hour for what it holds."""
        return self.chips * PRICES[self.pool] if self.chips and self.pool else None

    @property
    def rate(self) -> float | None:
        """Samples a second, as published."""
        return published_rate(self.pool, self.chips) if self.measured and self.pool else None


WATCHED: Final[dict[str, Known]] = {
    "steady": Known("Running", A100, 4, measured=True),
    "off": Known("Running", A100, 1, measured=True),
    "advised": Known("Running", A100, 1, measured=True),
    "saving": Known("Checkpointing", A100, 1, measured=True),
    "proving": Known("WarmingUp", SILENT, 1),
    "moved": Known("Running", A10G, 1, measured=True),
    "warming": Known("Running", A100, 1),
    "crash": Known("CrashLoop", A100, 1),
    "image": Known("ContainerNotStarted", A100, 1),
    "typo": Known("InvalidTemplate", A100),
    "holder": Known("Running", FULL, 4, measured=True),
    "crowded": Known("WaitingForCapacity"),
    "queued": Known("WaitingForQuota", A100),
    "asleep": Known("Suspended", A100),
    "never": Known("Suspended"),
    "done": Known("Completed"),
    "failed": Known("Failed"),
    "late": Known("Running", A100, 1, measured=True, targets="DeadlineMissed"),
    "intime": Known("Running", A100, 1, measured=True, targets="TargetsHold"),
    "risk": Known("Running", A100, 1, measured=True, targets="DeadlineAtRisk"),
    "spender": Known("Running", GOLD, 1, measured=True, targets="BudgetAtRisk"),
}
"""In the namespace that the operator watches."""

UNWATCHED: Final[dict[str, Known]] = {
    "unseen": Known("Unseen"),
    "foreign": Known("Unmanaged"),
    "last": Known("Finishing", A100, 4),
    "old": Known("Running", A100, 4, measured=True),
}
"""In another namespace; `last` and `old` have a status that was written by hand."""

OLD_SECONDS: Final = 7200.0
"""Age of the measurement of `old`, which is steady."""


def moment(seconds: float) -> str:
    """So many seconds from now, RFC 3339."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds").replace("+00:00", "Z")


class KnownFleet(Fleet):
    """The namespace that the operator watches."""

    def train(self, name: str, chips: int = 1, pools: tuple[str, ...] = (A100,), **more: Any) -> Body:
        """ResNet-50. play: annotations for the simulation; mode: of adaptation; the rest is of the spec."""
        play = {"workload": "resnet50", "warm-up": "0s", "checkpoint-delay": "200ms", **more.pop("play", {})}
        container: Body = {"name": "trainer", "image": "example.com/trainer:1", **more.pop("container", {})}
        template = {
            "metadata": {"annotations": {SIMULATION + key: value for key, value in play.items()}},
            "spec": {"containers": [container]},
        }
        return self.create(
            name,
            template=template,
            **{
                "job": {"chipsPerReplica": chips, "replicas": 1, **more.pop("job", {})},
                "elasticity": {"minChips": chips, "maxChips": chips},
                "placement": {"pools": {"allow": list(pools)}},
                # `saving` saves for as long as all others are looked at.
                "checkpoint": {"mode": "Signal", "timeout": "2h"},
                "profiling": {"interval": "1s", "window": more.pop("window", WINDOW)},
                "adaptation": {"mode": more.pop("mode", "Auto"), "cooldown": "1h"},
                **more,
            },
        )

    def begin(self) -> None:
        """Create every job of WATCHED."""
        better = (A100, A10G)
        work = {"totalSamples": DAY_SAMPLES}
        days = DAY_SAMPLES / published_rate(A100, 1)
        self.train("holder", 4, (FULL,))
        self.train("steady", 4)
        self.train("off", pools=better, mode="Off")
        self.train("advised", pools=better, mode="Recommend")
        self.train("saving", pools=better, play={"checkpoint-delay": "never"})
        self.train("proving", pools=(A100, SILENT))
        self.train("moved", pools=better)
        self.train("warming", window="1h")
        self.train("crash", play={"start-delay": "1h"})
        self.train("image", play={"image-pull-error": IMAGE_ERROR})
        self.train("typo", container={TYPO: ["python"]})
        self.train("queued", queueName="research")
        self.train("asleep")
        self.train("never", suspend=True)
        self.train("done", play={"duration": "1s"})
        self.train("failed", play={"duration": "1s", "exit-code": "3"}, job=FAILURE)
        self.train("late", targets={"deadline": moment(-7200)}, progress=work)
        self.train("intime", targets={"deadline": moment(3 * days)}, progress=work)
        self.train("risk", targets={"deadline": moment(days / 3)}, progress=work)
        self.train("spender", pools=(GOLD,), targets={"budget": f"{BUDGET:.0f}"}, progress=work)

    def settle(self) -> None:
        """Wait until every job is in its state."""
        self._report_failure("crash", 1, OUTPUT)
        eventually(lambda: self.running("holder", "holder-r1"), "holder runs")
        self.train("crowded", 4, (FULL,))
        eventually(lambda: self.running("asleep", "asleep-r1"), "asleep runs")
        self.edit("asleep", lambda spec: spec.update(suspend=True))
        for name, known in WATCHED.items():
            eventually(lambda name=name, known=known: self._is(name, known), f"{name} is {known}")  # type: ignore[misc]

    def _is(self, name: str, known: Known) -> bool:
        """Whether the cluster shows the state: the child, its pods, and the words of the operator's state machine."""
        status = self.status(name)
        history = status.get("history") or ()
        if known.measured and self.condition(name, "Profiled").get("status") != "True":
            return False
        if known.targets is not None and self.condition(name, "TargetsMet").get("reason") != known.targets:
            return False
        if name in ("saving", "proving"):
            return self._phase(name) == known.state
        if name == "moved":
            return [entry["outcome"] for entry in history] == ["Verified"]
        if name == "advised" and "recommendation" not in status:
            return False
        if known.state in ("Completed", "Failed"):
            return self.condition(name, known.state).get("status") == "True"
        return bool(self.condition(name, "Placed").get("reason") == known.state)

    def _phase(self, name: str) -> str | None:
        migration = self.status(name).get("migration") or {}
        return migration.get("phase")

    def _report_failure(self, name: str, code: int, output: str) -> None:
        """What the kubelet reports of a program that has ended with this code."""

        def go() -> bool:
            for pod in self.pods(name):
                if not pod["spec"].get("nodeName"):
                    continue
                over = {"exitCode": code, "reason": "Error", "message": output, "finishedAt": moment(0)}
                pod["status"].update(
                    phase="Failed",
                    containerStatuses=[
                        {
                            "name": container["name"],
                            "image": "x",
                            "imageID": "",
                            "ready": False,
                            "restartCount": 0,
                            "state": {"terminated": over},
                        }
                        for container in pod["spec"]["containers"]
                    ],
                )
                path = PODS.path(self.namespace, pod["metadata"]["name"], "status")
                try:
                    self.client.request("PUT", path, body={**pod, "apiVersion": "v1", "kind": "Pod"})
                except ClusterError:
                    return False
                return True
            return False

        eventually(go, f"{name} fails")

    def write_unwatched(self, elsewhere: Fleet) -> None:
        """Create every job of UNWATCHED."""
        elsewhere.create("unseen", placement={"pools": {"allow": [A100]}})
        elsewhere.create("foreign", managedBy="example.com/other", placement={"pools": {"allow": [A100]}})
        for name in ("last", "old"):
            made = elsewhere.create(name, placement={"pools": {"allow": [A100]}})
            write_status(elsewhere.client, made, _written(made, name))


def _written(made: Body, name: str) -> Body:
    """What an operator writes of such a job."""
    known = UNWATCHED[name]
    ran = OLD_SECONDS + 600.0
    reason, status = ("Running", "True") if known.measured else ("Finishing", "False")
    conditions = [("Placed", status, reason), ("Profiled", *(("True", "Measured") if known.measured else ()))]
    if not known.measured:
        conditions[1] = ("Profiled", "Unknown", "NotRunning")
    rate = published_rate(A100, 4)
    profile = {"window": "5m", "measuredAt": moment(-OLD_SECONDS), "samplesPerSecond": f"{rate:g}"}
    profile |= {"chipBusy": "0.98", "matrixActive": "0.14", "memoryBandwidth": "0.36"}
    price = f"{4 * PRICES[A100]:.2f}"
    return {
        "observedGeneration": made["metadata"]["generation"],
        "conditions": [
            {"type": kind, "status": truth, "reason": why, "message": "", "lastTransitionTime": moment(-ran)}
            for kind, truth, why in conditions
        ],
        "placement": {
            "revision": 1,
            "pool": A100,
            "chips": 4,
            "replicas": 1,
            "costPerHour": price,
            "since": moment(-ran),
            "createdAt": moment(-ran),
            "workloadHash": workload_hash([PodSet("worker", made["spec"]["workload"]["job"]["template"])]),
            "requestedChips": 4,
            "requestedReplicas": 1,
        },
        "profile": {**profile, "bottleneck": "MemoryBandwidth", "quality": "Measured"},
        "cost": {"perHour": price, "chips": 4, "spent": "1.00", "saved": "0.00", "asOf": moment(0)},
    }


def write_status(client: ClusterClient, made: Body, status: Body) -> None:
    """As the operator does."""
    about = made["metadata"]
    body = {"metadata": {"name": about["name"], "namespace": about["namespace"]}, "status": status}
    client.apply(PROFILED_JOBS, body, subresource="status")


def retried(act: Callable[[], object]) -> None:
    """Once more after a conflict."""
    while True:
        try:
            act()
            return
        except Conflict:
            time.sleep(0.05)
