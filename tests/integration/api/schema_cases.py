"""Changes that the schema rejects, with the API server's message."""

from __future__ import annotations

from typing import Final

from .objects import ABSENT, JOB, POLICY, POOL, Case, containers

_J = "spec.workload.job"
_T = f"{_J}.template"
_C = f"{_T}.spec.containers"
_CHIPS_SAID: Final = "must not ask for chips: remove "

SCHEMA_CASES: Final = (
    Case("unknown signal", JOB, {"spec.checkpoint": {"signal": "SIGKILL"}}, "spec.checkpoint.signal", '"SIGUSR1"'),
    Case(
        "mode Signal without a signal", JOB, {"spec.checkpoint": {"signal": ""}}, "spec.checkpoint.signal", '"SIGUSR1"'
    ),
    Case("no workload at all", JOB, {"spec.workload": ABSENT}, "spec.workload", "Required value"),
    Case("no template", JOB, {_T: ABSENT}, _T, "Required value"),
    Case("container without a name", JOB, {_T: containers({"image": "x"})}, f"{_C}[0].name", "Required value"),
    Case("containers of one name", JOB, {_T: containers({"name": "a"}, {"name": "a"})}, f"{_C}[1]", "Duplicate value"),
    Case("no chips", JOB, {f"{_J}.chipsPerReplica": 0}, f"{_J}.chipsPerReplica", "greater than or equal to 1"),
    Case("no replicas", JOB, {f"{_J}.replicas": 0}, f"{_J}.replicas", "greater than or equal to 1"),
    Case("too many replicas", JOB, {f"{_J}.replicas": 10_001}, f"{_J}.replicas", "less than or equal to 10000"),
    Case("objective", JOB, {"spec.targets": {"objective": "Fast"}}, "spec.targets.objective", '"MinimizeTime"'),
    Case("capacity", JOB, {"spec.placement": {"capacity": "spot"}}, "spec.placement.capacity", '"Spot"'),
    Case("batch", JOB, {"spec.elasticity": {"batch": "Fixed"}}, "spec.elasticity.batch", '"Global"'),
    Case("mode", JOB, {"spec.adaptation": {"mode": "On"}}, "spec.adaptation.mode", '"Recommend"'),
    Case("checkpoint mode", JOB, {"spec.checkpoint": {"mode": "Never"}}, "spec.checkpoint.mode", '"Periodic"'),
    Case("profiling mode", JOB, {"spec.profiling": {"mode": "On"}}, "spec.profiling.mode", '"Auto"'),
    Case("trace", JOB, {"spec.profiling": {"trace": "On"}}, "spec.profiling.trace", '"Auto"'),
    Case(
        "money without quotes", JOB, {"spec.targets": {"budget": 500}}, "spec.targets.budget", "must be of type string"
    ),
    Case(
        "no samples",
        JOB,
        {"spec.progress": {"totalSamples": 0}},
        "spec.progress.totalSamples",
        "greater than or equal to 1",
    ),
    Case(
        "a step without samples",
        JOB,
        {"spec.progress": {"samplesPerStep": 0}},
        "spec.progress.samplesPerStep",
        "greater than or equal to 1",
    ),
    Case("moves", JOB, {"spec.adaptation": {"maxMoves": -1}}, "spec.adaptation.maxMoves", "greater than or equal to 0"),
    Case(
        "pool allowed twice",
        JOB,
        {"spec.placement": {"pools": {"allow": ["a", "a"]}}},
        "spec.placement.pools.allow[1]",
        "Duplicate value",
    ),
    Case(
        "a vendor that nobody knows",
        JOB,
        {"spec.placement.variants": [{"vendor": "Acme"}]},
        "spec.placement.variants[0].vendor",
        '"Google"',
    ),
    Case(
        "a vendor twice",
        JOB,
        {"spec.placement.variants": [{"vendor": "AMD"}, {"vendor": "AMD"}]},
        "spec.placement.variants[1]",
        "Duplicate value",
    ),
    Case(
        "a variant's container without a name",
        JOB,
        {"spec.placement.variants": [{"vendor": "AMD", "template": {"spec": {"containers": [{"image": "x"}]}}}]},
        "spec.placement.variants[0].template.spec.containers[0].name",
        "Required value",
    ),
    Case("no accelerator", POOL, {"spec.accelerator": ABSENT}, "spec.accelerator", "Required value"),
    Case("node without chips", POOL, {"spec.chipsPerNode": 0}, "spec.chipsPerNode", "greater than or equal to 1"),
    Case(
        "link",
        POOL,
        {"spec.interconnect": {"intraNode": {"kind": "USB"}}},
        "spec.interconnect.intraNode.kind",
        '"NVLink"',
    ),
    Case("taint", POOL, {"spec.tolerations": [{"effect": "Never"}]}, "spec.tolerations[0].effect", '"NoSchedule"'),
    Case(
        "migrations",
        POLICY,
        {"spec.maxConcurrentMigrations": -1},
        "spec.maxConcurrentMigrations",
        "greater than or equal",
    ),
)
