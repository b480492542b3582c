"""What a ProfiledJob runs: spec.workload, with one field a kind of child."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Final, Protocol, Self

from pydantic import ConfigDict, Field, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from rightpool.api.job_set import JobSetWorkload
from rightpool.api.leader_worker_set import LeaderWorkerSetWorkload
from rightpool.api.model import ApiModel
from rightpool.api.placement import MAX_CHIPS_PER_REPLICA, MAX_REPLICAS
from rightpool.api.rules import Rule, validations
from rightpool.api.server import ServerWorkload
from rightpool.api.template import CHIP_CONTAINER_RULES, PodTemplate
from rightpool.api.train_job import TrainJobWorkload

MAX_RESTARTS: Final = 100_000  # times the replicas it must fit into Kubernetes' 32 bits
MAX_SECONDS: Final = 2**31 - 1  # Kubernetes' 32 bits

# Kubernetes' own schema judges the rules when the child is made.
_FAILURE_RULES: Final = {
    "type": "object",
    "description": "What failures of pods mean, as in a Job.",
    "required": ["rules"],
    "properties": {
        "rules": {
            "type": "array",
            "description": "Rules, of which the first that matches decides.",
            "maxItems": 19,  # Kubernetes allows 20, and one is the operator's
            "x-kubernetes-list-type": "atomic",
            "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        }
    },
}
PodFailurePolicy = Annotated[dict[str, Any], WithJsonSchema(_FAILURE_RULES)]


class Asked(Protocol):
    """What planning reads of a workload of any kind: the size of the pods that get chips. The rest of it is for its
    kind alone (workloads/kinds/)."""

    @property
    def chips_per_replica(self) -> int: ...

    @property
    def replicas(self) -> int: ...


_SUCCESS_RULES: Final = {
    "type": "object",
    "description": "When the job has succeeded before all its pods have, as in a Job.",
    "required": ["rules"],
    "properties": {
        "rules": {
            "type": "array",
            "description": "Rules, of which the first that is met decides.",
            "minItems": 1,
            "maxItems": 20,  # Kubernetes' bound
            "x-kubernetes-list-type": "atomic",
            "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        }
    },
}
SuccessPolicy = Annotated[dict[str, Any], WithJsonSchema(_SUCCESS_RULES)]


class JobWorkload(ApiModel):
    """A batch/v1 Indexed Job: as many pods as replicas, each with the same number of chips."""

    model_config = ConfigDict(json_schema_extra=validations(*CHIP_CONTAINER_RULES))

    chips_per_replica: int = Field(default=1, ge=1, le=MAX_CHIPS_PER_REPLICA)
    """Chips of each pod at the start. What is in force afterwards is in status.placement."""

    replicas: int = Field(default=1, ge=1, le=MAX_REPLICAS)
    """Pods at the start. What is in force afterwards is in status.placement, within `elasticity`."""

    template: PodTemplate
    """The pod template, as in a Job. It requests no chips: they are added where the job is placed."""

    chip_container: str | None = Field(default=None, max_length=63)
    """The container that gets the chips. Needed when the template has more than one container."""

    backoff_limit: int | None = Field(default=None, ge=0, le=MAX_RESTARTS)
    """How often the program is started again after it failed, before the job has failed. Each replica may fail as
    often. Default: 6. It applies from the next Revision on."""

    active_deadline_seconds: int | None = Field(default=None, ge=1, le=MAX_SECONDS)
    """Most seconds that a Revision may run; then the job has failed. Time in a queue does not count. A move starts it
    anew. It applies from the next Revision on. Default: no limit."""

    ttl_seconds_after_finished: int | None = Field(default=None, ge=0, le=MAX_SECONDS)
    """Seconds after the end of the job when Kubernetes deletes its Job with the pods and their logs. The ProfiledJob
    and its ledger stay until they are deleted. Default: all is kept."""

    pod_failure_policy: PodFailurePolicy | None = None
    """What failures of pods mean, as in a Job. Its rules come before the operator's own, by which a drained or
    reclaimed node is no failure of the program. Needs restartPolicy Never. It applies from the next Revision on."""

    success_policy: SuccessPolicy | None = None
    """When the job has succeeded although pods still run, as in a Job: such as `rules: [{succeededIndexes: "0"}]` where
    the leader ends it. The other pods are ended then. It applies from the next Revision on. Default: when all have."""

    @property
    def failure_rules(self) -> tuple[Mapping[str, Any], ...]:
        """The user's rules of podFailurePolicy."""
        return () if self.pod_failure_policy is None else tuple(self.pod_failure_policy.get("rules") or ())


class Workload(ApiModel):
    """What runs: exactly one kind of workload."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                "has(self.job) || has(self.jobSet) || has(self.trainJob) || has(self.leaderWorkerSet) || "
                "has(self.server)",
                "add it: job is the kind of workload that runs, and holds the pod template as job.template; or jobSet, "
                "trainJob or leaderWorkerSet, whose template is such an object's spec; or server, which answers "
                "requests",
                field=".job",
                reason="FieldValueRequired",
            ),
            Rule(
                "!has(self.job) || !has(self.jobSet)",
                "must not stand beside job, since one workload runs: remove either of them",
                field=".jobSet",
            ),
            Rule(
                "!has(self.trainJob) || (!has(self.job) && !has(self.jobSet))",
                "must not stand beside job or jobSet, since one workload runs: remove the others",
                field=".trainJob",
            ),
            Rule(
                "!has(self.leaderWorkerSet) || (!has(self.job) && !has(self.jobSet) && !has(self.trainJob))",
                "must not stand beside another kind, since one workload runs: remove the others",
                field=".leaderWorkerSet",
            ),
            Rule(
                "!has(self.server) || (!has(self.job) && !has(self.jobSet) && !has(self.trainJob) && "
                "!has(self.leaderWorkerSet))",
                "must not stand beside a job, since one workload runs: remove the others",
                field=".server",
            ),
        )
    )

    job: JobWorkload | None = None
    """A batch/v1 Indexed Job, for training and other work that ends."""

    job_set: JobSetWorkload | None = None
    """A JobSet of several roles, such as a leader and workers, of which one trains. JobSet must be installed."""

    train_job: TrainJobWorkload | None = None
    """A TrainJob of Kubeflow Trainer, whose pods are a runtime's. Trainer must be installed."""

    leader_worker_set: LeaderWorkerSetWorkload | None = None
    """A LeaderWorkerSet, whose groups of pods have no end. LeaderWorkerSet must be installed."""

    server: ServerWorkload | None = None
    """A Deployment that answers requests, behind a Service of its own. It has no end."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        """An object that admission has not seen is refused here, so that one is always chosen."""
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError("no kind of workload is set")
        return self

    @cached_property
    def _name(self) -> str:
        return next(name for name in type(self).model_fields if getattr(self, name) is not None)

    @property
    def field(self) -> str:
        """The kind of workload that is set: its field, as users write it."""
        return to_camel(self._name)

    @property
    def chosen(self) -> Asked:
        """The workload, of whichever kind it is. Planning reads it for every job and pool."""
        chosen: Asked = getattr(self, self._name)
        return chosen

    def with_chosen(self, chosen: Asked) -> Workload:
        """The same kind of workload, with another one of it."""
        return self.model_copy(update={self._name: chosen})

    @property
    def chips_per_replica(self) -> int:
        """Chips of each pod asked for at the start."""
        return self.chosen.chips_per_replica

    @property
    def replicas(self) -> int:
        """Pods asked for at the start."""
        return self.chosen.replicas

    @property
    def chips(self) -> int:
        """Chips asked for at the start."""
        chosen = self.chosen
        return chosen.chips_per_replica * chosen.replicas


UNSEEN: Final = Workload(job=JobWorkload(template={"spec": {"containers": [{"name": "unseen"}]}}))
"""Stands for the workload of an object that was not seen yet. Nothing is decided by it."""
