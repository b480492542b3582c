"""Trials: a change, the field, and its message."""

from __future__ import annotations

from typing import Final

from .objects import ABSENT, JOB, REFERENCE, Case

TRIAL_CASES: Final = (
    Case(
        "a trial of an object of somebody else's",
        JOB,
        {"spec.workload": ABSENT, "spec.workloadRef": REFERENCE, "spec.trial": {}},
        "spec.trial",
        "must not be set without workload.job",
    ),
    Case(
        "a trial in a queue",
        JOB,
        {"spec.queueName": "research", "spec.trial": {}},
        "spec.queueName",
        "must not be set beside trial, since no queue admits a trial",
    ),
    Case(
        "a trial of no time", JOB, {"spec.trial": {"duration": "0s"}}, "spec.trial.duration", "1s or more, 1h at most"
    ),
    Case("a trial of a day", JOB, {"spec.trial": {"duration": "24h"}}, "spec.trial.duration", "1h at most"),
    Case(
        "a trial that earns",
        JOB,
        {"spec.trial": {"maxCost": "-1"}},
        "spec.trial.maxCost",
        "must be an amount in dollars",
    ),
)
