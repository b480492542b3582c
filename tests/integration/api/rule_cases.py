"""Every rule: a change, the field that the API server names, and its message."""

from __future__ import annotations

from typing import Final

from .objects import JOB, POOL, Case, asking, containers

_J = "spec.workload.job"
_T = f"{_J}.template"
_C = f"{_T}.spec.containers"
_TWO: Final = containers({"name": "trainer", "image": "x"}, {"name": "logs", "image": "x"})
_NAME_SAID: Final = "must have at most 51 characters"
_CHIPS_SAID: Final = "must not ask for chips: remove "
_FREQUENCY_SAID: Final = 'must be a number, 0 or more, in quotes: write "0.5"'
_MONEY_SAID: Final = "must be an amount in dollars, 0 or more, in quotes"
_SHARE_SAID: Final = "must be a share between 0 and 1, in quotes"
_POSITIVE_SAID: Final = "must be a duration of 1s or more"
_TIME_SAID: Final = "must be a time with its zone: write 2026-12-01T00:00:00Z"

JOB_CASES: Final = (
    Case(
        "a node of one's own choice for a vendor",
        JOB,
        {"spec.placement.variants": [{"vendor": "AMD", "template": {"spec": {"nodeName": "mi300-0"}}}]},
        "spec.placement.variants[0].template.spec.nodeName",
        "must not be set, since it goes round the scheduler and the pools: remove it",
    ),
    Case(
        "a claim of devices for a vendor",
        JOB,
        {"spec.placement.variants": [{"vendor": "AMD", "template": {"spec": {"resourceClaims": [{"name": "gpu"}]}}}]},
        "spec.placement.variants[0].template.spec.resourceClaims",
        "must not be set, since the job's chips are asked for where it is placed",
    ),
    *(
        Case(
            f"{name} for a vendor",
            JOB,
            {"spec.placement.variants": [{"vendor": "AMD", "template": {"spec": {name: value}}}]},
            f"spec.placement.variants[0].template.spec.{name}",
            "must not be set in a variant, since pods are the same account on all chips",
        )
        for name, value in (
            ("serviceAccountName", "admin"),
            ("serviceAccount", "admin"),
            ("automountServiceAccountToken", True),
        )
    ),
    Case("name too long", JOB, {"metadata.name": "a" * 52}, "metadata.name", _NAME_SAID),
    Case("name with a dot", JOB, {"metadata.name": "bert.large"}, "metadata.name", _NAME_SAID),
    Case("name begins with a digit", JOB, {"metadata.name": "4bert"}, "metadata.name", _NAME_SAID),
    Case("no workload", JOB, {"spec.workload": {}}, _J, "add it: job is the kind of workload that runs"),
    Case("no containers", JOB, {_T: {"spec": {}}}, _C, "must hold at least one container: add"),
    Case("containers are empty", JOB, {_T: containers()}, _C, "must hold at least one container: add"),
    Case(
        "several containers, none named",
        JOB,
        {_T: _TWO},
        f"{_J}.chipContainer",
        "is needed because the template has several containers: name the one that gets the chips",
    ),
    Case(
        "chip container is not in the template",
        JOB,
        {f"{_J}.chipContainer": "train", _T: _TWO},
        f"{_J}.chipContainer",
        "must name a container of the template: write ",
    ),
    Case("asks for GPUs", JOB, {_T: asking("limits", "nvidia.com/gpu")}, f"{_C}[0].resources.limits", _CHIPS_SAID),
    Case(
        "asks for MIG", JOB, {_T: asking("limits", "nvidia.com/mig-1g.5gb")}, f"{_C}[0].resources.limits", _CHIPS_SAID
    ),
    Case("asks for TPUs", JOB, {_T: asking("requests", "google.com/tpu")}, f"{_C}[0].resources.requests", _CHIPS_SAID),
    Case("asks for AMD", JOB, {_T: asking("limits", "amd.com/gpu")}, f"{_C}[0].resources.limits", _CHIPS_SAID),
    Case(
        "asks for Neuron",
        JOB,
        {_T: asking("limits", "aws.amazon.com/neuroncore")},
        f"{_C}[0].resources.limits",
        _CHIPS_SAID,
    ),
    Case("asks for ours", JOB, {_T: asking("limits", "rightpool.dev/a100")}, f"{_C}[0].resources.limits", _CHIPS_SAID),
    Case(
        "init container asks for GPUs",
        JOB,
        {
            f"{_T}.spec.initContainers": [
                {"name": "warm", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}},
            ]
        },
        f"{_T}.spec.initContainers[0].resources.limits",
        _CHIPS_SAID,
    ),
    Case(
        "init container requests GPUs",
        JOB,
        {
            f"{_T}.spec.initContainers": [
                {"name": "warm", "image": "x", "resources": {"requests": {"nvidia.com/gpu": "1"}}},
            ]
        },
        f"{_T}.spec.initContainers[0].resources.requests",
        _CHIPS_SAID,
    ),
    Case(
        "restart policy of a Deployment",
        JOB,
        {f"{_T}.spec.restartPolicy": "Always"},
        f"{_T}.spec.restartPolicy",
        "must be Never or OnFailure",
    ),
    Case(
        "a node of one's own choice",
        JOB,
        {f"{_T}.spec.nodeName": "a100-0"},
        f"{_T}.spec.nodeName",
        "must not be set, since it goes round the scheduler and the pools: remove it",
    ),
    Case(
        "a claim of devices",
        JOB,
        {f"{_T}.spec.resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]},
        f"{_T}.spec.resourceClaims",
        "must not be set, since the job's chips are asked for where it is placed",
    ),
    Case(
        "other controller without a domain",
        JOB,
        {"spec.managedBy": "kueue"},
        "spec.managedBy",
        "must be a domain and a name: write rightpool.dev/operator",
    ),
    Case(
        "queue with a space",
        JOB,
        {"spec.queueName": "my queue"},
        "spec.queueName",
        "must be the name of a LocalQueue in this namespace",
    ),
    Case("queue without a name", JOB, {"spec.queueName": ""}, "spec.queueName", "must be the name of a LocalQueue"),
    Case(
        "pools denied by a wildcard",
        JOB,
        {"spec.placement": {"pools": {"deny": ["tpu-v5e", "a100*"]}}},
        "spec.placement.pools.deny[1]",
        "must be the name of one AcceleratorPool, without wildcards: write each name, or use pools.selector",
    ),
    Case(
        "pools allowed by a wildcard",
        JOB,
        {"spec.placement": {"pools": {"allow": ["a1?0"]}}},
        "spec.placement.pools.allow[0]",
        "must be the name of one AcceleratorPool, without wildcards: write each name, or use pools.selector",
    ),
    Case(
        "pool allowed and denied",
        JOB,
        {"spec.placement": {"pools": {"allow": ["a10g", "a100"], "deny": ["a100"]}}},
        "spec.placement.pools.deny",
        "must not name ",
    ),
    Case(
        "memory without a unit that exists",
        JOB,
        {"spec.placement": {"memoryPerChip": "14Qi"}},
        "spec.placement.memoryPerChip",
        "must be an amount of memory above 0: write 14Gi",
    ),
    Case(
        "no memory at all",
        JOB,
        {"spec.placement": {"memoryPerChip": "0"}},
        "spec.placement.memoryPerChip",
        "must be an amount of memory above 0: write 14Gi",
    ),
    Case(
        "scaling above 1",
        JOB,
        {"spec.targets": {"minScalingEfficiency": "85"}},
        "spec.targets.minScalingEfficiency",
        _SHARE_SAID,
    ),
    Case(
        "utilization in percent",
        JOB,
        {"spec.targets": {"minModelFlopsUtilization": "35"}},
        "spec.targets.minModelFlopsUtilization",
        _SHARE_SAID,
    ),
    Case(
        "a sample without FLOPs",
        JOB,
        {"spec.progress": {"flopsPerSample": "0e5"}},
        "spec.progress.flopsPerSample",
        'must be a number from 1 to 1e30, in quotes: write "2.1e12"',
    ),
    Case(
        "FLOPs with a unit",
        JOB,
        {"spec.progress": {"flopsPerSample": "2.1T"}},
        "spec.progress.flopsPerSample",
        'must be a number from 1 to 1e30, in quotes: write "2.1e12"',
    ),
    Case("negative cost", JOB, {"spec.targets": {"maxCostPerHour": "-1"}}, "spec.targets.maxCostPerHour", _MONEY_SAID),
    Case(
        "cost with an exponent",
        JOB,
        {"spec.targets": {"maxCostPerMillionSamples": "1e3"}},
        "spec.targets.maxCostPerMillionSamples",
        _MONEY_SAID,
    ),
    Case("negative budget", JOB, {"spec.targets": {"budget": "-500"}}, "spec.targets.budget", _MONEY_SAID),
    Case("budget with a currency", JOB, {"spec.targets": {"budget": "$500"}}, "spec.targets.budget", _MONEY_SAID),
    Case("deadline in words", JOB, {"spec.targets": {"deadline": "tomorrow"}}, "spec.targets.deadline", _TIME_SAID),
    Case(
        "deadline without zone",
        JOB,
        {"spec.targets": {"deadline": "2026-12-01T00:00:00"}},
        "spec.targets.deadline",
        _TIME_SAID,
    ),
    Case(
        "no such day", JOB, {"spec.targets": {"deadline": "2026-02-30T00:00:00Z"}}, "spec.targets.deadline", _TIME_SAID
    ),
    Case(
        "deadline without samples",
        JOB,
        {"spec.targets": {"deadline": "2026-12-01T00:00:00Z"}},
        "spec.targets.deadline",
        "needs spec.progress.totalSamples",
    ),
    Case("progress of nothing", JOB, {"spec.progress": {}}, "spec.progress", "must say something: add totalSamples"),
    Case(
        "deadline without the amount of work",
        JOB,
        {"spec.targets": {"deadline": "2027-01-01T00:00:00Z"}, "spec.progress": {"samplesPerStep": 8}},
        "spec.targets.deadline",
        "needs spec.progress.totalSamples",
    ),
    Case("no time to save", JOB, {"spec.checkpoint": {"timeout": "0s"}}, "spec.checkpoint.timeout", _POSITIVE_SAID),
    Case("for ever to save", JOB, {"spec.checkpoint": {"timeout": "7h"}}, "spec.checkpoint.timeout", "6h at most"),
    Case("window of days", JOB, {"spec.profiling": {"window": "7h"}}, "spec.profiling.window", "6h at most"),
    Case(
        "time to save is negative",
        JOB,
        {"spec.checkpoint": {"timeout": "-5m"}},
        "spec.checkpoint.timeout",
        _POSITIVE_SAID,
    ),
    Case(
        "relative checkpoint path",
        JOB,
        {"spec.checkpoint": {"path": "ckpt"}},
        "spec.checkpoint.path",
        "must be an absolute path",
    ),
    *(
        Case(
            f"checkpoint pattern {pattern!r}",
            JOB,
            {"spec.checkpoint": {"path": "/ckpt", "files": ["*.pt", pattern]}},
            "spec.checkpoint.files[1]",
            message,
        )
        for pattern, message in (
            ("/ckpt/*.pt", "must be relative to path"),
            ("..", "must be relative to path"),
            ("a/../b", "must be relative to path"),
            ("*.{pt,pth}", "must have no wildcards but"),
            ("epoch[0-9].pt", "must have no wildcards but"),
            ("a\nb", "must have no wildcards but"),
            ("$(HOME)", "must have no wildcards but"),
        )
    ),
    Case(
        "checkpoint patterns without a path",
        JOB,
        {"spec.checkpoint": {"files": ["*.pt"]}},
        "spec.checkpoint.files",
        "needs checkpoint.path",
    ),
    Case(
        "interval too short", JOB, {"spec.profiling": {"interval": "10ms"}}, "spec.profiling.interval", _POSITIVE_SAID
    ),
    Case(
        "window is no duration", JOB, {"spec.profiling": {"window": "5 min"}}, "spec.profiling.window", _POSITIVE_SAID
    ),
    Case(
        "window of two intervals",
        JOB,
        {"spec.profiling": {"interval": "1m", "window": "2m59s"}},
        "spec.profiling.window",
        "must be at least three times the interval",
    ),
    Case(
        "cooldown in days",
        JOB,
        {"spec.adaptation": {"cooldown": "1d"}},
        "spec.adaptation.cooldown",
        "must be a duration, 0 or more: write 90s, 5m or 1h30m",
    ),
    Case(
        "savings in percent", JOB, {"spec.adaptation": {"minSavings": "10%"}}, "spec.adaptation.minSavings", _SHARE_SAID
    ),
)

_CALIBRATION: Final = {
    "accelerator": "A10G-24GB",
    "measuredAt": "2026-11-22T12:00:00Z",
    "reason": "Measured",
    "message": "",
    "device": "NVIDIA A10G",
    "software": "PyTorch",
    "node": "a",
    "chips": 4,
}
_CHIP: Final = {"memory": "48Gi", "memoryGigabytesPerSecond": "864", "teraflops": {"bf16": "119.5"}}

POOL_CASES: Final = (
    Case("name too long", POOL, {"metadata.name": "a" * 64}, "metadata.name", "must have at most 63 characters"),
    Case("name with a dot", POOL, {"metadata.name": "a10g.large"}, "metadata.name", "must have at most 63 characters"),
    Case(
        "resource without a domain",
        POOL,
        {"spec.resourceName": "gpu"},
        "spec.resourceName",
        "must be an extended resource, a domain and a name: write nvidia.com/gpu",
    ),
    Case(
        "topology in words",
        POOL,
        {"spec.slice": {"topology": "2 by 4", "chips": 8}},
        "spec.slice.topology",
        "must be two or three sides: write 2x4 or 4x4x8",
    ),
    Case(
        "chips are not the topology's",
        POOL,
        {"spec.slice": {"topology": "2x2x4", "chips": 8}},
        "spec.slice.chips",
        "must be the product of the topology",
    ),
    Case(
        "slice of half a node",
        POOL,
        {"spec.chipsPerNode": 8, "spec.slice": {"topology": "2x2", "chips": 4}},
        "spec.slice.chips",
        "must be a whole number of nodes",
    ),
    Case("negative price", POOL, {"spec.price": {"perChipHour": "-1"}}, "spec.price.perChipHour", _MONEY_SAID),
    Case(
        "negative spot price",
        POOL,
        {"spec.price": {"spotPerChipHour": "-1"}},
        "spec.price.spotPerChipHour",
        _MONEY_SAID,
    ),
    Case(
        "interruptions in words",
        POOL,
        {"spec.spotInterruptionsPerDay": "seldom"},
        "spec.spotInterruptionsPerDay",
        _FREQUENCY_SAID,
    ),
    Case(
        "link without speed",
        POOL,
        {"spec.interconnect": {"intraNode": {"kind": "PCIe", "gigabytesPerSecond": "0"}}},
        "spec.interconnect.intraNode.gigabytesPerSecond",
        "must be a number above 0, in quotes",
    ),
    Case(
        "network without speed",
        POOL,
        {"spec.interconnect": {"interNode": {"kind": "Ethernet", "gigabytesPerSecond": "fast"}}},
        "spec.interconnect.interNode.gigabytesPerSecond",
        "must be a number above 0, in quotes",
    ),
    Case(
        "chip without memory",
        POOL,
        {"spec.chip": {**_CHIP, "memory": "0"}},
        "spec.chip.memory",
        "must be an amount of memory above 0",
    ),
    Case(
        "chip without figures",
        POOL,
        {"spec.chip": {}},
        "spec.chip",
        "must name at least one figure",
    ),
    Case(
        "chip that computes nothing",
        POOL,
        {"spec.chip": {**_CHIP, "teraflops": {}}},
        "spec.chip.teraflops",
        "must name at least one rate",
    ),
    *(
        Case(
            f"chip without a speed: {field}",
            POOL,
            {"spec.chip": {**_CHIP, field: "none"}},
            f"spec.chip.{field}",
            "must be a number above 0, in quotes",
        )
        for field in ("memoryGigabytesPerSecond", "watts")
    ),
    *(
        Case(
            f"chip without a rate in {rate}",
            POOL,
            {"spec.chip": {**_CHIP, "teraflops": {rate: "none"}}},
            f"spec.chip.teraflops.{rate}",
            "must be a number above 0, in quotes",
        )
        for rate in ("fp32", "tf32", "bf16", "fp16", "fp8", "int8")
    ),
    *(
        Case(
            f"calibration: {field}",
            POOL,
            {"status.calibration": {**_CALIBRATION, **wrong}},
            f"status.calibration.{field}",
            "must be a number above 0, in quotes",
        )
        for field, wrong in (
            *(
                (f"teraflops.{rate}", {"teraflops": {rate: "0"}})
                for rate in ("fp32", "tf32", "bf16", "fp16", "fp8", "int8")
            ),
            ("memoryGigabytesPerSecond", {"memoryGigabytesPerSecond": "-1"}),
            ("allReduce[0].gigabytesPerSecond", {"allReduce": [{"chips": 2, "gigabytesPerSecond": "NaN"}]}),
        )
    ),
    Case(
        "calibration without a rate",
        POOL,
        {"status.calibration": {**_CALIBRATION, "teraflops": {}}},
        "status.calibration.teraflops",
        "must name at least one rate",
    ),
)
