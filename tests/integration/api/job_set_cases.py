"""Rules of spec.workload.jobSet."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .objects import ABSENT, JOB, Case, Object, changed

_JOB = "spec.workload.job"
_J = "spec.workload.jobSet"
_T = f"{_J}.template"
_TIMES: Final = "pods of the role that trains times chipsPerReplica must be "


def _role(name: str, template: Object, **job: Any) -> Object:
    return {"name": name, "template": {"spec": {"template": template, **job}}}


_POD: Final = JOB["spec"]["workload"]["job"]["template"]
_LEADER: Final = _role("leader", _POD)
JOB_SET: Final = changed(
    JOB,
    {
        f"{_JOB}": ABSENT,
        f"{_J}.role": "workers",
        f"{_J}.chipsPerReplica": 4,
        f"{_T}.replicatedJobs": [_LEADER, _role("workers", _POD, parallelism=2)],
    },
)


def of_templates(cases: Iterable[Case]) -> Iterator[Case]:
    """The rules of a Job's pod template hold in each role, too."""
    where = f"{_T}.replicatedJobs[1].template.spec.template"
    for case in cases:
        if case.field.startswith(f"{_JOB}.template."):
            template = changed(JOB, case.change)["spec"]["workload"]["job"]["template"]
            roles = [_LEADER, _role("workers", copy.deepcopy(template), parallelism=2)]
            field = case.field.replace(f"{_JOB}.template", where)
            yield Case(f"{case.id} in a role", JOB_SET, {f"{_T}.replicatedJobs": roles}, field, case.message)


JOB_SET_CASES: Final = (
    Case(
        "two workloads",
        JOB_SET,
        {_JOB: JOB["spec"]["workload"]["job"]},
        _J,
        "must not stand beside job, since one workload runs: remove either of them",
    ),
    Case("several roles, none named", JOB_SET, {f"{_J}.role": ABSENT}, f"{_J}.role", "name the one that trains"),
    Case("a role that is not there", JOB_SET, {f"{_J}.role": "trainers"}, f"{_J}.role", "must be the name of one of"),
    Case(
        "suspended in itself", JOB_SET, {f"{_T}.suspend": True}, f"{_T}.suspend", "must not be set, since spec.suspend"
    ),
    Case(
        "managed by another",
        JOB_SET,
        {f"{_T}.managedBy": "kueue.x-k8s.io/multikueue"},
        f"{_T}.managedBy",
        "must not be set, since spec.managedBy",
    ),
    Case(
        "a subdomain of its own",
        JOB_SET,
        {f"{_T}.network": {"subdomain": "ranks"}},
        f"{_T}.network.subdomain",
        "must not be set, since the pods of each Revision are under their own",
    ),
    Case(
        "no names",
        JOB_SET,
        {f"{_T}.network": {"enableDNSHostnames": False}},
        f"{_T}.network.enableDNSHostnames",
        "must not be false, since the pods of the role that trains find the first by its name",
    ),
    Case(
        "a JobSet of fewer chips than the least",
        JOB_SET,
        {"spec.elasticity": {"minChips": 16}},
        _T,
        f"{_TIMES}at least elasticity.minChips",
    ),
    Case(
        "a JobSet of more chips than the most",
        JOB_SET,
        {"spec.elasticity": {"maxChips": 4}},
        _T,
        f"{_TIMES}at most elasticity.maxChips",
    ),
    Case(
        "sizes of a JobSet without batch",
        JOB_SET,
        {"spec.elasticity": {"maxChips": 64}},
        "spec.elasticity.batch",
        "is needed where minChips and maxChips differ: write PerChip",
    ),
    Case(
        "the asked size of a JobSet splits the model",
        JOB_SET,
        {"spec.elasticity": {"modelParallel": {"pipeline": 3}}},
        _T,
        f"{_TIMES}a multiple of elasticity.modelParallel.tensor times pipeline",
    ),
)
