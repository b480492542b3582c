"""The ProfiledJob of a trial can harm nothing that outlives its pods, and is measured as the job is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rightpool.api.choices import TrialVolumes
from rightpool.api.placement import Placement
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.trial_run import TrialRun
from rightpool.workloads.injection import Injection, inject
from rightpool.workloads.load import add_load
from rightpool.workloads.template import InvalidTemplate
from rightpool.workloads.trial import trial_spec, trial_template
from rightpool_profiler.warm_up import WarmUpSettings

VOLUMES = [
    {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "runs"}},
    {"name": "data", "nfs": {"server": "files", "path": "/"}},
    {"name": "cache", "emptyDir": {}},
    {"name": "settings", "configMap": {"name": "settings"}},
]
MOUNTS = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in VOLUMES]
DEVICES = [{"name": "checkpoints", "devicePath": "/dev/xvda"}]
TEMPLATE: dict[str, Any] = {
    "spec": {
        "priorityClassName": "urgent",
        "volumes": VOLUMES,
        "initContainers": [{"name": "fetch", "volumeMounts": MOUNTS}],
        "containers": [{"name": "main", "volumeMounts": MOUNTS, "volumeDevices": DEVICES}],
    }
}


def containers(template: dict[str, Any]) -> list[dict[str, Any]]:
    return [*template["spec"]["initContainers"], *template["spec"]["containers"]]


def test_it_reads_what_outlives_it() -> None:
    found = trial_template(TEMPLATE, TrialVolumes.READ_ONLY)
    for container in containers(found):
        only_read = {mount["name"] for mount in container["volumeMounts"] if mount.get("readOnly")}
        assert only_read == {"checkpoints", "data"}
        assert "volumeDevices" not in container
        assert {"name": "RIGHTPOOL_TRIAL", "value": "1"} in container["env"]
    assert found["spec"]["volumes"] == VOLUMES
    assert "priorityClassName" not in found["spec"], "it takes chips from nobody"


def test_or_has_nothing_that_outlives_it() -> None:
    found = trial_template(TEMPLATE, TrialVolumes.SCRATCH)
    kinds = {volume["name"]: sorted(volume.keys() - {"name"}) for volume in found["spec"]["volumes"]}
    assert kinds == {
        "checkpoints": ["emptyDir"],
        "data": ["emptyDir"],
        "cache": ["emptyDir"],
        "settings": ["configMap"],
    }
    limits = {one["name"]: one["emptyDir"] for one in found["spec"]["volumes"] if "emptyDir" in one}
    assert limits == {"checkpoints": {"sizeLimit": "10Gi"}, "data": {"sizeLimit": "10Gi"}, "cache": {}}


@pytest.mark.parametrize(("own", "seconds"), [(None, 5), (3600, 5), (0, 0)])
def test_its_chips_are_free_soon(own: int | None, seconds: int) -> None:
    pod = {**TEMPLATE["spec"], **({} if own is None else {"terminationGracePeriodSeconds": own})}
    found = trial_template({"spec": pod}, TrialVolumes.READ_ONLY)
    assert found["spec"]["terminationGracePeriodSeconds"] == seconds


def test_the_jobs_own_template_stays() -> None:
    trial_template(TEMPLATE, TrialVolumes.SCRATCH)
    assert TEMPLATE["spec"]["volumes"][0] == {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "runs"}}


def spec(**more: Any) -> ProfiledJobSpec:
    workload = {"job": {"chipsPerReplica": 4, "replicas": 2, "template": TEMPLATE}}
    return ProfiledJobSpec.model_validate({"workload": workload, "trial": {}, **more})


RUN = TrialRun(1, Placement("a10g", 4, 1), 0.0, 120.0)


@pytest.mark.parametrize(("batch", "samples"), [("PerChip", 128), ("Global", 256)])
def test_it_is_as_big_as_it_is_there_and_counted_alike(batch: str, samples: int) -> None:
    asked = spec(
        elasticity={"minChips": 2, "maxChips": 16, "chipCounts": [2, 4, 8, 16], "batch": batch},
        progress={"samplesPerStep": 256, "totalSamples": 10**9},
        checkpoint={"path": "/checkpoints"},
        placement={"pools": {"deny": ["tpu"]}},
    )
    found = ProfiledJobSpec.model_validate(trial_spec(asked, RUN))
    assert (found.chips, found.workload.replicas, found.min_chips, found.max_chips) == (4, 1, 4, 4)
    assert found.placement.pools.allow == ("a10g",)
    assert found.progress is not None and found.progress.samples_per_step == samples
    assert found.total_samples is None, "it has no work of its own to end"
    assert found.adaptation.mode == "Off" and found.checkpoint.mode == "None" and found.checkpoint.path is None
    assert found.profiling.window.total_seconds() == 120.0
    job = found.workload.job
    assert job is not None and job.backoff_limit == 0 and job.active_deadline_seconds == 900 + 360


def test_it_runs_what_is_written_for_the_chips_there() -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "trainer:tpu"}], "volumes": [VOLUMES[0]]}}
    asked = spec(placement={"variants": [{"vendor": "Google", "template": template}]})
    found = trial_spec(asked, TrialRun(1, Placement("v5e", 8, 1), 0.0, 120.0, vendor="Google"))
    made = found["workload"]["job"]["template"]
    assert made["spec"]["containers"][0]["image"] == "trainer:tpu"
    assert "variants" not in found["placement"]


def server_spec() -> ProfiledJobSpec:
    probe = {"tcpSocket": {"port": 8000}}
    template = {
        "metadata": {"labels": {"app": "ranker"}, "annotations": {"team": "shop"}},
        "spec": {"restartPolicy": "Always", "containers": [{"name": "server", "readinessProbe": probe}]},
    }
    sample = {"path": "/infer", "requests": 50, "bodyFrom": {"configMapKeyRef": {"name": "samples", "key": "one"}}}
    server = {"port": 8000, "metrics": {"port": 8002}, "warmUp": sample, "template": template}
    return ProfiledJobSpec.model_validate(
        {"workload": {"server": server}, "trial": {}, "profiling": {"interval": "5s"}, "targets": {}}
    )


def test_a_servers_is_a_job_that_no_service_finds_and_whose_profiler_sends_it_the_sample() -> None:
    asked = server_spec()
    found = ProfiledJobSpec.model_validate(trial_spec(asked, TrialRun(1, Placement("a10g", 1, 1), 0.0, 60.0, load=12)))
    job = found.workload.job
    assert job is not None and job.replicas == 1 and found.workload.server is None
    assert "labels" not in job.template["metadata"] and job.template["metadata"]["annotations"]["team"] == "shop"
    assert job.template["spec"]["restartPolicy"] == "Never"
    assert job.template["spec"]["containers"][0]["ports"] == [{"name": "metrics", "containerPort": 8002}]
    template = inject(job.template, None, Injection("profiler:1", "", 5.0, "Off", "None", "SIGUSR1"), 1)
    add_load(template)
    sidecar = template["spec"]["initContainers"][0]
    env = {one["name"]: one["value"] for one in sidecar["env"]}
    assert json.loads(env["RIGHTPOOL_LOAD"]) == {"at_once": 12, "seconds": 60.0}
    sent = WarmUpSettings.read(env["RIGHTPOOL_WARM_UP"])
    assert (sent.port, sent.method, sent.path, sent.requests) == (8000, "POST", "/infer", 50)
    assert sidecar["readinessProbe"], "its pod is ready once it is warm"
    assert template["spec"]["volumes"][-1]["configMap"]["name"] == "samples"


def test_whoever_writes_the_annotation_gets_no_requests_by_what_is_none() -> None:
    with pytest.raises(InvalidTemplate, match=r"rightpool\.dev/load is the operator's"):
        add_load({"metadata": {"annotations": {"rightpool.dev/load": "{}"}}, "spec": {}})
