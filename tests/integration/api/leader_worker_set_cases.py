"""Rules of spec.workload.leaderWorkerSet."""

from __future__ import annotations

from typing import Final

from .objects import ABSENT, JOB, Case, changed

_JOB = "spec.workload.job"
_L = "spec.workload.leaderWorkerSet"
_SIZE = f"{_L}.template.leaderWorkerTemplate.size"
_TIMES: Final = "pods of all groups times chipsPerReplica must be "

LEADER_WORKER_SET: Final = changed(
    JOB,
    {
        _JOB: ABSENT,
        f"{_L}.chipsPerReplica": 2,
        f"{_L}.template.replicas": 2,
        _SIZE: 2,
        f"{_L}.template.leaderWorkerTemplate.workerTemplate": JOB["spec"]["workload"]["job"]["template"],
    },
)
LEADER_WORKER_SET_CASES: Final = (
    Case(
        "a LeaderWorkerSet beside a Job",
        LEADER_WORKER_SET,
        {_JOB: JOB["spec"]["workload"]["job"]},
        _L,
        "must not stand beside another kind, since one workload runs: remove the others",
    ),
    Case(
        "a LeaderWorkerSet in a queue",
        LEADER_WORKER_SET,
        {"spec.queueName": "q"},
        "spec.queueName",
        "must not be set for a LeaderWorkerSet yet",
    ),
    Case(
        "a LeaderWorkerSet of fewer chips than the least",
        LEADER_WORKER_SET,
        {"spec.elasticity": {"minChips": 16}},
        _SIZE,
        f"{_TIMES}at least elasticity.minChips",
    ),
    Case(
        "a LeaderWorkerSet of more chips than the most",
        LEADER_WORKER_SET,
        {"spec.elasticity": {"maxChips": 4}},
        _SIZE,
        f"{_TIMES}at most elasticity.maxChips",
    ),
    Case(
        "sizes of a LeaderWorkerSet without batch",
        LEADER_WORKER_SET,
        {"spec.elasticity": {"maxChips": 64}},
        "spec.elasticity.batch",
        "is needed where minChips and maxChips differ: write PerChip",
    ),
    Case(
        "the asked size of a LeaderWorkerSet splits the model",
        LEADER_WORKER_SET,
        {"spec.elasticity": {"modelParallel": {"pipeline": 3}}},
        _SIZE,
        f"{_TIMES}a multiple of elasticity.modelParallel.tensor times pipeline",
    ),
)
