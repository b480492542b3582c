"""Fields in the API server's words: by name where the index is not the user's."""

from __future__ import annotations

import pytest

from rightpool.workloads.refused_fields import by_name

CHILD = {
    "spec": {
        "template": {
            "spec": {
                "initContainers": [{"name": "rightpool-profiler"}, {"name": "rightpool-agent"}, {"name": "fetch"}],
                "containers": [{"name": "trainer", "env": [{"name": "RANK"}, {"name": "LR"}, {"name": None}]}],
            }
        },
        "replicatedJobs": [
            {"template": {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "TZ"}]}]}}}}}
        ],
    }
}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            'Job.batch "a-r1" is invalid: spec.template.spec.containers[0].env[1].valueFrom: Invalid value: ""',
            'Job.batch "a-r1" is invalid: spec.template.spec.containers[0].env[LR].valueFrom: Invalid value: ""',
        ),
        (
            "spec.template.spec.initContainers[2].image: Required",
            "spec.template.spec.initContainers[fetch].image: Required",
        ),
        (
            '"spec.template.spec.containers[0].env[0].a", "spec.template.spec.containers[0].comand"',
            '"spec.template.spec.containers[0].env[RANK].a", "spec.template.spec.containers[0].comand"',
        ),
        (
            "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]: no",
            "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]: no",
        ),
        (
            'Job in version "v1" cannot be handled as a Job: strict decoding error: unknown field "spec.comand"',
            'unknown field "spec.comand"',
        ),
        (
            "spec.replicatedJobs[0].template.spec.template.spec.containers[0].env[0].value: no",
            "spec.replicatedJobs[0].template.spec.template.spec.containers[0].env[TZ].value: no",
        ),
        (
            'admission webhook "validator.trainjob.trainer.kubeflow.org" denied the request: spec.runtimeRef: Invalid '
            'value: {"name":"a-r1","apiGroup":"b","of":{"c":1}}: must have a volumeMount',
            "webhook validator.trainjob.trainer.kubeflow.org: spec.runtimeRef: must have a volumeMount",
        ),
        # What is not there, or has no name, stays as it was said.
        ("spec.template.spec.containers[0].env[2].value", "spec.template.spec.containers[0].env[2].value"),
        ("spec.template.spec.containers[7].env[99].value", "spec.template.spec.containers[7].env[99].value"),
        ("spec.template.spec.containers.env[1].x", "spec.template.spec.containers.env[1].x"),
        ("exceeded quota: few", "exceeded quota: few"),
    ],
)
def test_indexes_that_only_the_child_has_are_shown_as_names(message: str, shown: str) -> None:
    assert by_name(message, CHILD) == shown
