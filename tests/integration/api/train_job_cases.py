"""Rules of spec.workload.trainJob."""

from __future__ import annotations

from typing import Final

from .objects import ABSENT, JOB, Case, changed

_JOB = "spec.workload.job"
_J = "spec.workload.trainJob"
_T = f"{_J}.template"
_NODES = f"{_T}.trainer.numNodes"
_TIMES: Final = "times chipsPerReplica must be "

TRAIN_JOB: Final = changed(
    JOB,
    {
        _JOB: ABSENT,
        f"{_J}.chipsPerReplica": 4,
        f"{_T}.runtimeRef": {"name": "torch-distributed"},
        _NODES: 2,
    },
)
TRAIN_JOB_CASES: Final = (
    Case(
        "a TrainJob beside a Job",
        TRAIN_JOB,
        {_JOB: JOB["spec"]["workload"]["job"]},
        _J,
        "must not stand beside job or jobSet, since one workload runs: remove the others",
    ),
    Case(
        "a TrainJob suspended in itself", TRAIN_JOB, {f"{_T}.suspend": True}, f"{_T}.suspend", "must not be set, since"
    ),
    Case(
        "a TrainJob managed by another",
        TRAIN_JOB,
        {f"{_T}.managedBy": "kueue.x-k8s.io/multikueue"},
        f"{_T}.managedBy",
        "must not be set, since spec.managedBy",
    ),
    Case(
        "a TrainJob that patches its runtime",
        TRAIN_JOB,
        {f"{_T}.runtimePatches": [{"manager": "example.com/me"}]},
        f"{_T}.runtimePatches",
        "must not be set, since the pods of each Revision come from a runtime of their own",
    ),
    Case(
        "a TrainJob in a queue",
        TRAIN_JOB,
        {"spec.queueName": "q"},
        "spec.queueName",
        "must not be set for a TrainJob yet",
    ),
    Case(
        "a TrainJob with variants",
        TRAIN_JOB,
        {"spec.placement.variants": [{"vendor": "Google", "template": {}}]},
        "spec.placement.variants",
        "must not be set for a TrainJob, whose pods are its runtime's",
    ),
    Case(
        "a TrainJob of fewer chips than the least",
        TRAIN_JOB,
        {"spec.elasticity": {"minChips": 16}},
        _NODES,
        f"{_TIMES}at least elasticity.minChips",
    ),
    Case(
        "a TrainJob of more chips than the most",
        TRAIN_JOB,
        {"spec.elasticity": {"maxChips": 4}},
        _NODES,
        f"{_TIMES}at most elasticity.maxChips",
    ),
    Case(
        "sizes of a TrainJob without batch",
        TRAIN_JOB,
        {"spec.elasticity": {"maxChips": 64}},
        "spec.elasticity.batch",
        "is needed where minChips and maxChips differ: write PerChip",
    ),
    Case(
        "the asked size of a TrainJob splits the model",
        TRAIN_JOB,
        {"spec.elasticity": {"modelParallel": {"pipeline": 3}}},
        _NODES,
        f"{_TIMES}a multiple of elasticity.modelParallel.tensor times pipeline",
    ),
)
