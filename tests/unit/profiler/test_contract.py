"""One schema of the contract's metrics: what the sidecar exports keeps it, from every source and for every field."""

from __future__ import annotations

import dataclasses
import subprocess
from collections import defaultdict
from typing import Any

import jsonschema
import pytest
from prometheus_client.parser import text_string_to_metric_families

from devcluster import deps
from rightpool import contract
from rightpool_profiler import exposition
from rightpool_profiler.report import RATIOS, Chip, Model
from rightpool_profiler.state import State
from tests.patience import PATIENCE
from tests.unit.profiler.test_state import report
from tests.unit.telemetry.sources.recordings import recorded
from tools.chartdocs.metric_schema import schema
from tools.chartdocs.metrics import names_of_jobs

WHOLE = Chip(
    "GPU-1",
    {name: 0.5 for name in RATIOS if name != "utilization"},
    memory_used=6e10,
    memory_total=8e10,
    power=400.0,
    power_limit=700.0,
    energy=1e6,
    temperature=61.0,
    xid=0.0,
    repair=0.0,
    name="NVIDIA-H200",
    sharing="none",
    rank=0,
    pipes=dict.fromkeys(contract.PIPES, 0.25),
    throttle=dict.fromkeys(contract.REASONS, False),
    errors=dict.fromkeys(contract.ERRORS, 0.0),
    links={("nvlink", "tx"): 1e9, ("nvlink", "rx"): 1e9, ("pcie", "tx"): 1e8, ("pcie", "rx"): 1e8},
)
OTHER = dataclasses.replace(WHOLE, uuid="GPU-b")
DEGREES = tuple((name, 2) for name in contract.MODEL_DEGREES)


def page(*chips: Chip) -> str:
    made = State(10.0, 1)
    model = Model("bf16", "fp32", 1000, 4000, 5000, DEGREES, 1e12)
    for moment in range(1, 5):
        for rank in (0, 1):
            one = report(
                pid=10 + rank, rank=rank, world=2, steps=moment, platform="cuda", chips=chips, model=model,
                memory_retries=0, compile_seconds=0.1 * moment, saving_seconds=0.1 * moment,
                input_seconds=0.01 * moment, saved=1.0, save_seconds=0.5,
            )  # fmt: skip
            made.apply(one, float(moment), 100.0)
    made.add_shares(10, {part: 0.1 for part in contract.PARTS if part != contract.PART_INPUT}, 4.0)
    return exposition.render(*made.exposition(4.0))


def as_json(text: str) -> dict[str, Any]:
    found: dict[str, Any] = defaultdict(list)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name].append({"labels": dict(sample.labels), "value": sample.value})
    return dict(found)


@pytest.mark.parametrize(
    "text", [page(WHOLE, OTHER), page(), recorded("sidecar")], ids=["everything", "no chip", "recorded"]
)
def test_a_page_keeps_the_schema(text: str) -> None:
    jsonschema.validate(as_json(text), schema())


def test_every_metric_of_the_contract_can_be_exported() -> None:
    families = {family.name for family in text_string_to_metric_families(page(WHOLE, OTHER))}
    wanted = {name.removesuffix("_total") for name in names_of_jobs()}
    assert wanted == {name.removesuffix("_total") for name in families}


def test_the_schema_refuses_what_is_not_in_the_contract() -> None:
    good = as_json(page(WHOLE))
    for metric, series in (
        ("rightpool_chip_luck_ratio", {"labels": {"chip": "a"}, "value": 1}),
        (contract.CHIP_BUSY, {"labels": {"chip": "a"}, "value": 1.2}),
        (contract.CHIP_BUSY, {"labels": {}, "value": 1}),
        (contract.CHIP_THROTTLE, {"labels": {"chip": "a", "reason": "boredom"}, "value": 1}),
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**good, metric: [series]}, schema())


@pytest.mark.parametrize(
    "field", ["power", "power_limit", "energy", "temperature", "xid", "repair", "memory_used", "memory_total"]
)
def test_a_field_that_the_chip_does_not_have_is_absent(field: str) -> None:
    names = {
        "power": contract.CHIP_POWER,
        "power_limit": contract.CHIP_POWER_LIMIT,
        "energy": contract.CHIP_ENERGY,
        "temperature": contract.CHIP_TEMPERATURE,
        "xid": contract.CHIP_XID,
        "repair": contract.CHIP_REPAIR,
        "memory_used": contract.CHIP_MEMORY_USED,
        "memory_total": contract.CHIP_MEMORY_TOTAL,
    }
    assert names[field] in as_json(page(WHOLE))
    assert names[field] not in as_json(page(dataclasses.replace(WHOLE, **{field: None})))


@pytest.mark.parametrize("ratio", [name for name in RATIOS if name != "utilization"])
def test_a_ratio_that_the_chip_does_not_have_is_absent(ratio: str) -> None:
    import dataclasses

    less = dataclasses.replace(WHOLE, ratios={name: 0.5 for name in WHOLE.ratios if name != ratio})
    assert len(as_json(page(WHOLE)).keys() - as_json(page(less)).keys()) == 1


def test_promtool_finds_nothing_to_say() -> None:
    program = deps.find("promtool")
    if program is None:
        pytest.skip("promtool comes with the Debian package prometheus: python -m devcluster deps")
    done = subprocess.run(
        [program, "check", "metrics"], input=page(WHOLE), capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
