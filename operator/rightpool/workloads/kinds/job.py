"""The kind `job`: one Indexed batch/v1 Job for each Revision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rightpool.api.kubernetes import JOBS
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.api.units import unix_time_of
from rightpool.hardware.pool import Pool
from rightpool.workloads.injection import Injection, inject
from rightpool.workloads.kinds.kind import ChildState, condition_is_true
from rightpool.workloads.metadata import child_metadata, controller_reference
from rightpool.workloads.names import check_names, child_name, service_name
from rightpool.workloads.owner import Owner
from rightpool.workloads.pods import Template, pod_template
from rightpool.workloads.rendezvous import rendezvous_env
from rightpool.workloads.template import chip_container_of, pod_spec, set_default_env

# Kubernetes' default of 6 counts pod failures. A crash ends all pods of the gang, so 6 restarts of the program are 6
# failures of each pod.
_RESTARTS: Final = 6

_INDEX: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


class JobKind:
    """Training and other work that ends."""

    field: Final = "job"
    resource: Final = JOBS
    optional: Final = False

    def build(
        self,
        owner: Owner,
        workload: Template,
        queue_name: str | None,
        ref: Revision,
        pool: Pool,
        injection: Injection | None,
        suspend: bool = False,
    ) -> dict[str, Any]:
        """The manifest of a new Job.

        A Job's template is immutable, and a later version of the operator may build another one. So only `suspend` of
        an existing Job is changed.
        """
        placement = ref.placement
        check_names(owner.name, ref.revision, placement.replicas)
        template = pod_template(owner, workload, ref, pool)
        _connect(template, workload.chip_container, owner, ref, pool)
        if injection is not None:
            template = inject(template, workload.chip_container, injection, placement.chips_per_replica)
        restarts = _RESTARTS if workload.backoff_limit is None else workload.backoff_limit
        spec: dict[str, Any] = {
            "completionMode": "Indexed",
            "completions": placement.replicas,
            "parallelism": placement.replicas,
            "backoffLimit": restarts * placement.replicas,
            # The next pod of an index starts when the previous one has ended, so the checkpoint has one writer.
            "podReplacementPolicy": "Failed",
            # Kueue admits a Job by resuming it.
            "suspend": suspend or queue_name is not None,
            "template": template,
        }
        if workload.active_deadline_seconds is not None:
            spec["activeDeadlineSeconds"] = workload.active_deadline_seconds
        rules = [*map(dict, workload.failure_rules)]
        if pod_spec(template)["restartPolicy"] == "Never":
            # A drained or reclaimed node is no failure of the program. Kubernetes requires restartPolicy Never for it.
            rules.append({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]})
        if rules:
            spec["podFailurePolicy"] = {"rules": rules}
        return {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": child_metadata(template, owner, ref, queue_name),
            "spec": spec,
        }

    def observe(self, body: Mapping[str, Any]) -> ChildState:
        """Read the Job's conditions. Kubernetes removes startTime when the Job is suspended, and sets it again."""
        spec, status = body.get("spec") or {}, body.get("status") or {}
        conditions = status.get("conditions") or ()
        failed = next((c for c in conditions if c.get("type") == "Failed" and c.get("status") == "True"), None)
        succeeded = condition_is_true(conditions, "Complete")
        decided = condition_is_true(conditions, "SuccessCriteriaMet") or condition_is_true(conditions, "FailureTarget")
        return ChildState(
            suspended=bool(spec.get("suspend")),
            succeeded=succeeded,
            failed=failed is not None,
            failure=None if failed is None else f"{failed.get('reason', '')}: {failed.get('message', '')}".strip(": "),
            started_at=unix_time_of(status.get("startTime")),
            ending=decided and not succeeded and failed is None,
            expires=spec.get("ttlSecondsAfterFinished") is not None,
            failures=_count(status.get("failed")),
            failures_allowed=_count(spec.get("backoffLimit", _RESTARTS)),
        )

    def suspension(self, suspend: bool, placement: Placement) -> dict[str, Any]:
        """The fields that suspend or resume a Job; its parallelism does not change."""
        return {"spec": {"suspend": suspend}}

    def expiry(self, seconds: int) -> dict[str, Any]:
        """See Kind. An apply names all fields that it has set before."""
        return {"spec": {"suspend": False, "ttlSecondsAfterFinished": seconds}}

    def owner_of(self, pod: Mapping[str, Any], child: str) -> str:
        """See Kind. The version of the API group may differ."""
        controller = controller_reference(pod)
        group = str(controller.get("apiVersion")).partition("/")[0]
        named = (group, controller.get("kind"), controller.get("name")) == (JOBS.group, JOBS.kind, child)
        return str(controller.get("uid", "")) if named else ""


JOB: Final = JobKind()


def _connect(template: dict[str, Any], chip_container: str | None, owner: Owner, ref: Revision, pool: Pool) -> None:
    """Give the pods host names by their index, and start them as a gang."""
    child, spec = child_name(owner.name, ref.revision), pod_spec(template)
    spec.setdefault("restartPolicy", "Never")
    subdomain = spec.setdefault("subdomain", service_name(child))
    variables = rendezvous_env(
        ref.placement, pool, child=child, subdomain=subdomain, namespace=owner.namespace, index=_INDEX
    )
    set_default_env(chip_container_of(template, chip_container), variables)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
