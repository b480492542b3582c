"""Rules of spec.elasticity."""

from __future__ import annotations

from typing import Final

from .objects import JOB, Case

_J = "spec.workload.job"

ELASTICITY_CASES: Final = (
    Case(
        "least above most",
        JOB,
        {"spec.elasticity": {"minChips": 16, "maxChips": 8}},
        "spec.elasticity.minChips",
        "must not exceed maxChips: lower minChips or raise maxChips",
    ),
    Case(
        "fewer chips than the least",
        JOB,
        {"spec.elasticity": {"minChips": 16}},
        f"{_J}.replicas",
        "times chipsPerReplica must be at least elasticity.minChips: raise",
    ),
    Case(
        "more chips than the most",
        JOB,
        {"spec.elasticity": {"maxChips": 4}},
        f"{_J}.replicas",
        "times chipsPerReplica must be at most elasticity.maxChips: lower",
    ),
    Case(
        "sizes without batch",
        JOB,
        {"spec.elasticity": {"maxChips": 64}},
        "spec.elasticity.batch",
        "is needed where minChips and maxChips differ: write PerChip",
    ),
    Case(
        "counts outside the bounds",
        JOB,
        {"spec.elasticity": {"maxChips": 8, "chipCounts": [8, 16]}},
        "spec.elasticity.chipCounts",
        "must lie between minChips and maxChips: remove the counts outside",
    ),
    Case(
        "counts below the least",
        JOB,
        {"spec.elasticity": {"minChips": 2, "chipCounts": [1, 8], "batch": "Global"}},
        "spec.elasticity.chipCounts",
        "must lie between minChips and maxChips: remove the counts outside",
    ),
    Case(
        "counts descend",
        JOB,
        {"spec.elasticity": {"chipCounts": [8, 4]}},
        "spec.elasticity.chipCounts",
        "must ascend without repeats: write [1, 2, 4, 8]",
    ),
    Case(
        "counts repeat",
        JOB,
        {"spec.elasticity": {"chipCounts": [4, 4, 8], "batch": "Global"}},
        "spec.elasticity.chipCounts",
        "must ascend without repeats: write [1, 2, 4, 8]",
    ),
    Case(
        "least splits the model",
        JOB,
        {"spec.elasticity": {"minChips": 6, "batch": "PerChip", "modelParallel": {"tensor": 2, "pipeline": 2}}},
        "spec.elasticity.minChips",
        "must be a multiple of ",
    ),
    Case(
        "most splits the model",
        JOB,
        {"spec.elasticity": {"maxChips": 10, "batch": "PerChip", "modelParallel": {"tensor": 4}}},
        "spec.elasticity.maxChips",
        "must be a multiple of ",
    ),
    Case(
        "a size splits the model",
        JOB,
        {"spec.elasticity": {"chipCounts": [6, 8], "batch": "PerChip", "modelParallel": {"tensor": 4}}},
        "spec.elasticity.chipCounts",
        "must be a multiple of ",
    ),
    Case(
        "the asked size splits the model",
        JOB,
        {"spec.elasticity": {"modelParallel": {"pipeline": 3}}},
        f"{_J}.replicas",
        "times chipsPerReplica must be a multiple of elasticity.modelParallel.tensor times pipeline",
    ),
)
