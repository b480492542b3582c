"""The ProfiledJob of a trial: the program of another one, elsewhere, which can harm nothing that outlives its pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rightpool.api.choices import AdaptationMode, Batch, CheckpointMode, TrialVolumes
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.server import ServerWorkload
from rightpool.api.trial_run import TrialRun
from rightpool.workloads.load import load_annotation
from rightpool.workloads.metrics_port import name_metrics_port
from rightpool.workloads.overlay import workload_on
from rightpool.workloads.template import normalised

VARIABLE: Final = "RIGHTPOOL_TRIAL"
START_SECONDS: Final = 900
"""For the start of a trial's pods. After this and three times what is measured Kubernetes ends them, should the
operator not do so."""

END_SECONDS: Final = 5
"""Between SIGTERM and SIGKILL, at most: a trial saves nothing, and its chips are lent."""
SCRATCH_LIMIT: Final = "10Gi"
"""Of each volume that is empty in a trial and is not in the job: it is on the node's disk, which others need."""

# What ends with a pod, or can't be written to.
_OF_THE_POD: Final = frozenset(
    {"configMap", "downwardAPI", "emptyDir", "ephemeral", "gitRepo", "image", "name", "projected", "secret"}
)


def trial_spec(spec: ProfiledJobSpec, run: TrialRun) -> dict[str, Any]:
    """The spec of a trial's ProfiledJob, in wire form. Raises InvalidTemplate where a variant can't be laid over the
    template."""
    assert spec.trial is not None
    place, workload = run.placement, workload_on(spec, run.vendor)
    chosen = workload.job or workload.server
    assert chosen is not None
    template = trial_template(chosen.template, spec.trial.volumes)
    if workload.server is not None:
        _without_clients(template, workload.server, run)
    window = max(run.measures, 3.0 * spec.profiling.interval.total_seconds())
    job = {
        "chipsPerReplica": place.chips_per_replica,
        "replicas": place.replicas,
        "template": template,
        "backoffLimit": 0,
        "activeDeadlineSeconds": START_SECONDS + round(3.0 * window),
        **({} if chosen.chip_container is None else {"chipContainer": chosen.chip_container}),
    }
    elasticity = spec.elasticity.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"chip_counts"})
    return {
        "workload": {"job": job},
        "elasticity": {**elasticity, "minChips": place.chips, "maxChips": place.chips},
        "placement": {"pools": {"allow": [place.pool]}, "capacity": place.capacity.value},
        "checkpoint": {"mode": CheckpointMode.NONE.value},
        "profiling": {
            **spec.profiling.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"window"}),
            "trace": "Off",
            "window": f"{window:.0f}s",
        },
        "adaptation": {"mode": AdaptationMode.OFF.value},
        **_progress(spec, place.chips),
    }


def trial_template(template: Mapping[str, Any], volumes: TrialVolumes) -> dict[str, Any]:
    """The template without what outlives a pod and can be written to."""
    found = normalised(template)
    pod = found.setdefault("spec", {})
    pod.pop("priorityClassName", None)  # it takes chips from nobody
    pod["terminationGracePeriodSeconds"] = min(pod.get("terminationGracePeriodSeconds", END_SECONDS), END_SECONDS)
    lasting = {one.get("name") for one in pod.get("volumes") or () if not one.keys() <= _OF_THE_POD}
    if volumes is TrialVolumes.SCRATCH:
        for one in pod.get("volumes") or ():
            if one.get("name") in lasting:
                name = one["name"]
                one.clear()
                one.update(name=name, emptyDir={"sizeLimit": SCRATCH_LIMIT})
    for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ())):
        if volumes is TrialVolumes.READ_ONLY:
            for mount in container.get("volumeMounts") or ():
                if mount.get("name") in lasting:
                    mount["readOnly"] = True
        container.pop("volumeDevices", None)  # blocks can be written to, however they are mounted
        env = [one for one in container.get("env") or () if one.get("name") != VARIABLE]
        container["env"] = [*env, {"name": VARIABLE, "value": "1"}]
    return found


def _without_clients(template: dict[str, Any], server: ServerWorkload, run: TrialRun) -> None:
    """A server's template for pods that no Service finds, by whatever label it looks, and that end for good. Their
    profiler sends the sample request, as many at once as `run` says."""
    metadata = template.setdefault("metadata", {})
    metadata.pop("labels", None)
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **load_annotation(server, run)}
    template["spec"]["restartPolicy"] = "Never"
    if server.metrics is not None:
        name_metrics_port(template, server.chip_container, server.metrics.port)


def _progress(spec: ProfiledJobSpec, chips: int) -> dict[str, Any]:
    """How its work is counted. With batch PerChip a step has as many samples as its chips make."""
    if spec.progress is None:
        return {}
    counted = spec.progress.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"total_samples"})
    steps = spec.progress.samples_per_step
    if steps is not None and spec.batch is Batch.PER_CHIP:
        counted["samplesPerStep"] = max(1, round(steps * chips / spec.chips))
    return {"progress": counted} if counted else {}
