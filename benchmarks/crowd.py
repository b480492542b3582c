"""A crowd of running jobs as the API server holds them: ProfiledJobs with their status, Jobs, pods, and machines.

Everything follows from a job's number, so that the same crowd can be made up again by whoever needs a part of it.
"""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from devcluster import simulated
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.status import ProfiledJobStatus
from rightpool.cluster.client import Listing
from rightpool.cluster.resources import Resource
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.placement import Placement, hourly_cost
from rightpool.hardware.pool import Pool
from rightpool.planning.account import Account
from rightpool.planning.revision import RevisionRef
from rightpool.planning.snapshot import JobKey, JobState
from rightpool.profiles.sample import Field, RevisionKey
from rightpool.runtime.children import Children
from rightpool.runtime.facts import node_facts
from rightpool.runtime.fleet import survey_fleet
from rightpool.runtime.persistence import account_to_wire, revision_to_wire
from rightpool.runtime.usage import ChipUsage
from rightpool.workloads.names import workload_hash

NAMESPACES: Final = 50
# 100,000 chips. Nodes of 64 where the platform does not fix the number: 12,500 nodes of 8 would measure kwok.
MACHINES: Final = (
    (replace(simulated.A100, chips=64), 750),
    (replace(simulated.A10G, chips=64), 750),
    (simulated.TPU_V5E, 500),
)
_TPU_EVERY: Final = 25
_SIZES: Final = (1, 2, 4, 8)
_NOISE: Final = 0.004

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Member:
    """One job of the crowd, by its number."""

    number: int

    @property
    def key(self) -> JobKey:
        """Where its ProfiledJob is."""
        return JobKey(f"team-{self.number % NAMESPACES}", f"job-{self.number}")

    @property
    def revision(self) -> RevisionKey:
        """Whose readings its readings are."""
        return RevisionKey(self.key.namespace, self.key.name, 1)

    @property
    def on_tpu(self) -> bool:
        """Whether it is one of the few that run on TPUs."""
        return self.number % _TPU_EVERY == 0

    @property
    def chips(self) -> int:
        """On one pod."""
        return 8 if self.on_tpu else _SIZES[self.number % len(_SIZES)]

    @property
    def node(self) -> str:
        """The node of its pod: eight jobs on each, one on a node that is a slice."""
        if self.on_tpu:
            return MACHINES[2][0].node_name(self.number // _TPU_EVERY)
        machines, count = MACHINES[self.number % 2]
        return machines.node_name(self.number // 16 % count)

    def profiled_job(self) -> Body:
        """As its user would write it: all sizes allowed, moves only recommended, so that the crowd stays as it is."""
        return {
            "apiVersion": "rightpool.dev/v1alpha1",
            "kind": "ProfiledJob",
            "metadata": {"name": self.key.name, "namespace": self.key.namespace},
            "spec": {
                "workload": {
                    "job": {
                        "chipsPerReplica": self.chips,
                        "replicas": 1,
                        "template": {
                            "spec": {
                                "containers": [
                                    {
                                        "name": "trainer",
                                        "image": "example.com/trainer:1",
                                        "command": ["python", "-m", "train", f"--run={self.number}"],
                                    }
                                ]
                            }
                        },
                    }
                },
                "elasticity": {"minChips": 1, "maxChips": 8, "chipCounts": list(_SIZES)},
                "adaptation": {"mode": "Recommend"},
                "profiling": {"interval": "10s", "window": "60s"},
            },
        }

    def placed(self, spec: ProfiledJobSpec, pools: Mapping[str, Pool], now: float) -> RevisionRef:
        """Its first Revision, which has run for an hour."""
        resource = "google.com/tpu" if self.on_tpu else "nvidia.com/gpu"
        wanted = "A10G" if self.number % 2 else "A100"
        pool = next(
            pool
            for pool in pools.values()
            if pool.resource_name == resource and (self.on_tpu or pool.accelerator.key.startswith(wanted))
        )
        job = spec.workload.job
        digest = workload_hash(job.template, job.chip_container)
        placement = Placement(pool.name, self.chips, 1)
        return RevisionRef(
            1, placement, digest, (self.chips, 1), now - 3600.0, hourly_cost(placement, pool), now - 3600.0
        )

    def status(self, ref: RevisionRef) -> Body:
        """What the operator needs to know it again; the rest it writes itself."""
        cost = account_to_wire(Account().started(ref.cost_per_hour, ref.created_at))
        return ProfiledJobStatus(observed_generation=1, placement=revision_to_wire(ref), cost=cost).to_dict()

    def child(self, stored: Body, ref: RevisionRef, pool: Pool, children: Children) -> Body:
        """The Job of its Revision."""
        spec = ProfiledJobSpec.model_validate(stored["spec"])
        uid = str(stored["metadata"]["uid"])
        state = JobState(self.key, uid, 1, ref.created_at, spec, ref.workload_hash, ref)
        return dict(children.build(state, ref, pool, suspend=False))

    def pod(self, job: Body) -> Body:
        """The pod of its Job, already on its node."""
        about, template = job["metadata"], job["spec"]["template"]
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": about["name"],
            "uid": about["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{about['name']}-0",
                "namespace": about["namespace"],
                "labels": template["metadata"]["labels"],
                "annotations": template["metadata"].get("annotations") or {},
                "ownerReferences": [owner],
            },
            "spec": {**template["spec"], "nodeName": self.node},
        }

    def reading(self, now: float) -> dict[Field, float]:
        """What is measured of it at this moment: steady but for noise."""
        draw = random.Random(self.number)
        busy = draw.uniform(0.4, 1.0)
        rate = 200.0 * self.chips * draw.uniform(0.5, 2.0)
        exposed = draw.uniform(0.01, 0.3) if self.chips > 1 else 0.0
        ratios = {
            Field.CHIP_BUSY: busy,
            Field.SLOWEST_CHIP_BUSY: 0.97 * busy,
            Field.COMPUTE_ACTIVE: 0.8 * busy,
            Field.MATRIX_ACTIVE: draw.uniform(0.05, 0.5),
            Field.MEMORY_BANDWIDTH: draw.uniform(0.1, 0.6),
            Field.EXPOSED_COMMUNICATION: exposed,
            Field.POWER: draw.uniform(100.0, 250.0),
            Field.SAMPLES_PER_SECOND: rate,
            Field.STEP_SECONDS: 64.0 * self.chips / rate,
        }
        memory = draw.uniform(4e9, 15e9)
        noise = random.Random(hash((self.number, int(now))))
        return {
            **{field: value * (1.0 + noise.uniform(-_NOISE, _NOISE)) for field, value in ratios.items()},
            Field.INPUT_WAIT: 0.01,
            Field.MEMORY_USED: memory,
            Field.MEMORY_TOTAL: 16e9,
            Field.THROTTLE: 0.0,
            Field.STEPS: math.floor((now - 1.7e9) / ratios[Field.STEP_SECONDS]),
            Field.CHECKPOINT_TIMESTAMP: math.floor(now / 600.0) * 600.0,
            Field.CHECKPOINT_SECONDS: 12.0,
            Field.PODS: 1.0,
        }


def members(count: int, first: int = 0) -> list[Member]:
    """Jobs number `first` to `count` - 1."""
    return [Member(number) for number in range(first, count)]


def nodes() -> list[Body]:
    """Every machine, Ready."""
    made = []
    for machines, count in MACHINES:
        for index in range(count):
            node = machines.node(index)
            node["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
            made.append(node)
    return made


def pools() -> dict[str, Pool]:
    """The pools that the operator will find on these machines."""
    usage = ChipUsage(_Nothing(), interval=math.inf)
    facts = [node_facts(node) for node in nodes()]
    return dict(survey_fleet([], facts, [], usage, load_catalog()).inventory.pools)


class _Nothing:
    """A cluster in which nobody else has pods."""

    def pages(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> Iterator[Listing]:
        yield from ()
