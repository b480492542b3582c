"""One tenant's namespace: jobs that go through everything within seconds, and what can be asked about them."""

from __future__ import annotations

from typing import Any

from rightpool.api.kubernetes import JOBS, Resource
from rightpool.cluster.resources import PODS, SERVICES
from rightpool.contract import LABEL_JOB
from tests.integration.runtime.harness import Fleet, use_image
from tests.patience import eventually

Body = dict[str, Any]
SIMULATION = "simulation.rightpool.dev/"
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
SIMULATION_MAP = ("kube-system", "simulation")

NODE_LABEL = "faults.rightpool.dev/pool"

_A100: Body = {"accelerator": "A100-SXM4-80GB", "chipsPerNode": 8, "price": {"perChipHour": "5.07"}}
_A10G: Body = {"accelerator": "A10G-24GB", "chipsPerNode": 4, "price": {"perChipHour": "0.70"}}
POOLS: dict[str, Body] = {
    "faults-a100": {**_A100},
    "faults-a10g": {**_A10G},
    "faults-slow": {**_A10G},  # delivers a quarter of what it should: a move there is undone
    "faults-dead": {**_A10G},  # its chips are free and its nodes take no pod: nothing ever starts there
    "faults-full": {**_A10G},  # others may take all of it, whom an operator of one namespace can't see
    "faults-free": {**_A10G, "price": {"perChipHour": "0"}},  # its owner says that it costs nothing
    "faults-typo": {"accelerator": "A100-SMX4", "chipsPerNode": 8, "price": {"perChipHour": "0.01"}},
    # What these are, tests change.
    "faults-price": {"accelerator": "RTXA5000-24GB", "chipsPerNode": 4, "price": {"perChipHour": "0.50"}},
    "faults-edited": {**_A100},
    "faults-gone": {**_A100},
    "faults-shaky": {**_A10G},
    # A ResNet-50 costs about as much there as on an A100: nobody knows before whether it costs less.
    "faults-fair": {**_A10G, "price": {"perChipHour": "2.10"}},
}
for _name, _spec in POOLS.items():
    _spec.update(resourceName="nvidia.com/gpu", nodeSelector={NODE_LABEL: _name})
A100, A10G, SLOW, DEAD, FULL, FREE, TYPO, PRICED, EDITED, GONE, SHAKY, FAIR = POOLS
NODES = dict.fromkeys(POOLS, 2) | {A100: 16, A10G: 16, SLOW: 16, SHAKY: 6}
# An RTX A5000 has no price but its pool's: the catalog knows none. Here it does what an A10G does.
PLAYED = {PRICED: "A10G-24GB"}
# Far slower than what a window of a few seconds is off by on a busy machine.
SIMULATED: Body = {SLOW: '{"throughput": 0.12}'}
POLICY: Body = {
    "defaultAdaptationMode": "Auto",
    "maxConcurrentMigrations": 1000,
    "maxMovesPerHour": 100_000,
    "minRunTime": "1s",
    "startDeadline": "24h",
    "circuitBreaker": {"window": 10, "maxRolledBackShare": "1.0"},
}
# A target that takes no pod is given up after this long where a test waits for that. Elsewhere a machine that is busy
# must not let a move look like a failed one, however long a test has waited for something else.
SHORT = "3s"


def nodes() -> list[Body]:
    """Simulated nodes that no pool but these tests' own may count."""
    made = []
    for pool, spec in POOLS.items():
        for index in range(NODES[pool]):
            name, chips = f"{pool}-{index}", str(spec["chipsPerNode"])
            pods = "0" if pool == DEAD else "250"
            room = {"cpu": "512", "memory": "4Ti", "ephemeral-storage": "8Ti", "pods": pods, "nvidia.com/gpu": chips}
            played = PLAYED.get(pool, spec["accelerator"])
            labels = {"kubernetes.io/hostname": name, NODE_LABEL: pool, SIMULATION + "accelerator": played}
            about = {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
            taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
            made.append(
                {"metadata": about, "spec": {"taints": [taint]}, "status": {"capacity": room, "allocatable": room}}
            )
    return made


def new_image(spec: Body) -> None:
    """A user's edit of what runs."""
    use_image(spec, "2")


class Tenant(Fleet):
    """Jobs here may move; see `Fleet` for what can be asked."""

    def train(self, name: str, *, replicas: int = 1, play: Body | None = None, **spec: Any) -> Body:
        """ResNet-50 on an A100, which is cheaper on an A10G. play: annotations for the simulation."""
        annotations = {
            "workload": "resnet50",
            "warm-up": "0s",
            "checkpoint-delay": "300ms",
            "start-delay": "200ms",
            "stop-delay": "200ms",
            **(play or {}),
        }
        template = {
            "metadata": {"annotations": {SIMULATION + key: value for key, value in annotations.items()}},
            "spec": {"containers": [{"name": "trainer", "image": "example.com/trainer:1"}]},
        }
        return self.create(
            name,
            **{
                "template": template,
                "job": {"chipsPerReplica": 1, "replicas": replicas},
                "elasticity": {"minChips": replicas, "maxChips": replicas},
                "placement": {"pools": {"allow": [A100, A10G]}},
                "checkpoint": {"mode": "Signal", "timeout": "10m"},
                "profiling": {"interval": "1s", "window": "6s"},
                "adaptation": {"cooldown": "1h"},
                **spec,
            },
        )

    def settled(self, name: str) -> bool:
        """Placed, and nothing under way."""
        status = self.status(name)
        return self.condition(name, "Placed").get("status") == "True" and not status.get("migration")

    def phase(self, name: str) -> str | None:
        migration = self.status(name).get("migration") or {}
        return migration.get("phase")

    def pool(self, name: str) -> str | None:
        placement = self.status(name).get("placement") or {}
        return placement.get("pool")

    def outcomes(self, name: str) -> list[str]:
        return [entry["outcome"] for entry in self.status(name).get("history") or ()]

    def running(self, name: str, child: str | None = None) -> bool:
        number = (self.status(name).get("placement") or {}).get("revision")
        return super().running(name, child or f"{name}-r{number}")

    def children(self, name: str) -> set[str]:
        """Names of Jobs and Services of a job."""
        found: set[str] = set()
        for resource in (JOBS, SERVICES):
            bodies = self.client.list_all(resource, self.namespace, labels=f"{LABEL_JOB}={name}")
            found |= {f"{resource.kind}/{body['metadata']['name']}" for body in bodies}
        return found

    def only_child(self, name: str) -> None:
        """Nothing is left of any Revision but the present one, and nothing else was made."""
        placement = self.status(name)["placement"]
        child = f"{name}-r{placement['revision']}"
        wanted = {f"Job/{child}"} | ({f"Service/{child}"} if placement["replicas"] > 1 else set())
        eventually(lambda: self.children(name) == wanted, f"only {wanted}")
        maps = {body["metadata"]["name"] for body in self.client.list_all(CONFIG_MAPS, self.namespace)}
        # Books, ended jobs and what pools cost: the operator's own namespace is a tenant's here.
        books = {name for name in maps if name.startswith("rightpool-")}
        assert maps - books <= {"kube-root-ca.crt"}

    def uids(self, name: str) -> set[str]:
        """Of the living pods."""
        return {pod["metadata"]["uid"] for pod in self.pods(name) if pod["status"].get("phase") == "Running"}

    def annotate_pods(self, name: str, **changes: str) -> None:
        """Tell the simulation to play the living pods differently."""
        for pod in self.client.list_all(PODS, self.namespace, labels=f"{LABEL_JOB}={name}"):
            pod["metadata"].setdefault("annotations", {}).update({SIMULATION + k: v for k, v in changes.items()})
            self.client.replace(PODS, pod)
