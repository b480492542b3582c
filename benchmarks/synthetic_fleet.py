"""A synthetic fleet as API objects: nodes, and running ProfiledJobs with their status, Job and pod.

Everything is computed from a job's number, so that each process of a benchmark can generate the same fleet.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from devcluster import simulated
from rightpool.api.account import Account
from rightpool.api.kubernetes import Resource
from rightpool.api.placement import Placement
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.api.status import ProfiledJobStatus
from rightpool.cluster.client import Listing
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.profiles.sample import Field, RevisionKey
from rightpool.runtime.act.children import Children
from rightpool.runtime.observe.facts import node_facts
from rightpool.runtime.observe.pool_inventory import take_inventory
from rightpool.runtime.observe.usage import ChipUsage
from rightpool.workloads.kinds.registry import pod_sets_of
from rightpool.workloads.names import workload_hash

NAMESPACES: Final = 50
# 100,000 chips. Nodes of 64 where the platform does not fix the number: 12,500 nodes of 8 would measure kwok.
NODE_KINDS: Final = (
    (replace(simulated.A100, chips=64), 750),
    (replace(simulated.A10G, chips=64), 750),
    (simulated.TPU_V5E, 500),
)
_TPU_EVERY: Final = 25
_SIZES: Final = (1, 2, 4, 8)
_NOISE: Final = 0.004

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SyntheticJob:
    """One job of the fleet, computed from its number."""

    number: int

    @property
    def key(self) -> JobKey:
        """Namespace and name of its ProfiledJob."""
        return JobKey(f"team-{self.number % NAMESPACES}", f"job-{self.number}")

    @property
    def revision_key(self) -> RevisionKey:
        """The Revision that its readings belong to."""
        return RevisionKey(self.key.namespace, self.key.name, 1)

    @property
    def on_tpu(self) -> bool:
        """Whether it runs on TPUs."""
        return self.number % _TPU_EVERY == 0

    @property
    def chips(self) -> int:
        """Chips of its one pod."""
        return 8 if self.on_tpu else _SIZES[self.number % len(_SIZES)]

    @property
    def node(self) -> str:
        """The node of its pod: eight jobs share a GPU node; a TPU node has one job."""
        if self.on_tpu:
            return NODE_KINDS[2][0].node_name(self.number // _TPU_EVERY)
        kind, count = NODE_KINDS[self.number % 2]
        return kind.node_name(self.number // 16 % count)

    def pool(self, pools: Mapping[str, Pool]) -> Pool:
        """The pool of its node, of these."""
        resource = "google.com/tpu" if self.on_tpu else "nvidia.com/gpu"
        chip = "A10G" if self.number % 2 else "A100"
        return next(
            pool
            for pool in pools.values()
            if pool.resource_name == resource and (self.on_tpu or pool.accelerator.key.startswith(chip))
        )

    def profiled_job(self) -> Body:
        """The ProfiledJob as its user writes it. Moves are only recommended, so that the fleet is static."""
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
                "elasticity": {"minChips": 1, "maxChips": 8, "chipCounts": list(_SIZES), "batch": "PerChip"},
                "adaptation": {"mode": "Recommend"},
                "profiling": {"interval": "10s", "window": "60s"},
            },
        }

    def first_revision(self, spec: ProfiledJobSpec, pools: Mapping[str, Pool], now: float) -> Revision:
        """Its first Revision, created an hour ago."""
        pool = self.pool(pools)
        digest = workload_hash(pod_sets_of(spec.workload))
        placement = Placement(pool.name, self.chips, 1)
        return Revision(1, placement, digest, self.chips, 1, now - 3600.0, pool.price.hourly(placement), now - 3600.0)

    def status(self, ref: Revision) -> Body:
        """The part of the status that the operator reads back after a restart; it writes the rest itself."""
        state = JobState(revision=ref, account=Account().started(ref.cost_per_hour, ref.created_at))
        return ProfiledJobStatus(observed_generation=1, state=state).to_dict()

    def child(self, stored: Body, ref: Revision, pool: Pool, children: Children) -> Body:
        """The Job of its Revision."""
        spec = ProfiledJobSpec.model_validate(stored["spec"])
        uid = str(stored["metadata"]["uid"])
        job = Job(self.key, uid, 1, ref.created_at, spec, ref.workload_hash, state=JobState(revision=ref))
        return dict(children.build(job, ref, pool, suspend=False))

    def pod(self, job: Body) -> Body:
        """The pod of its Job, bound to its node."""
        metadata, template = job["metadata"], job["spec"]["template"]
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{metadata['name']}-0",
                "namespace": metadata["namespace"],
                "labels": template["metadata"]["labels"],
                "annotations": template["metadata"].get("annotations") or {},
                "ownerReferences": [owner],
            },
            "spec": {**template["spec"], "nodeName": self.node},
        }

    def reading(self, now: float) -> dict[Field, float]:
        """Its measured values at this time: constant except for noise."""
        draw = random.Random(self.number)
        busy = draw.uniform(0.4, 1.0)
        rate = 200.0 * self.chips * draw.uniform(0.5, 2.0)
        exposed = draw.uniform(0.01, 0.3) if self.chips > 1 else 0.0
        ratios = {
            Field.CHIP_BUSY: busy,
            Field.SLOWEST_CHIP_BUSY: 0.97 * busy,
            Field.COMPUTE_ACTIVE: 0.8 * busy,
            Field.MATRIX_ACTIVE: min(draw.uniform(0.05, 0.5), 0.8 * busy),  # no more than compute units
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
            Field.SAMPLES: 64.0 * self.chips * math.floor((now - 1.7e9) / ratios[Field.STEP_SECONDS]),
            Field.CHECKPOINT_TIMESTAMP: math.floor(now / 600.0) * 600.0,
            Field.CHECKPOINT_SECONDS: 12.0,
            Field.PODS: 1.0,
        }


def synthetic_jobs(count: int, first: int = 0) -> list[SyntheticJob]:
    """The jobs with numbers `first` to `count` - 1."""
    return [SyntheticJob(number) for number in range(first, count)]


def nodes(most: int | None = None) -> list[Body]:
    """Every node, Ready; of each kind the first `most`."""
    bodies = []
    for kind, count in NODE_KINDS:
        for index in range(count)[:most]:
            node = kind.node(index)
            node["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
            bodies.append(node)
    return bodies


def pools(machines: Sequence[Body] | None = None) -> dict[str, Pool]:
    """The pools that the operator discovers on these nodes, or on all."""
    usage = ChipUsage(NoPods(), interval=math.inf)
    facts = [node_facts(node) for node in (nodes() if machines is None else machines)]
    return dict(take_inventory([], facts, [], usage, load_catalog()).inventory.pools)


class NoPods:
    """A cluster without pods of other owners."""

    def pages(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> Iterator[Listing]:
        yield from ()
