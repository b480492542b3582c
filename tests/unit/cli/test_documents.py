"""Documents for programs keep the published schema: each kind that a command prints, and each key of it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

import rightpool.cli
from rightpool.cli import explain, history, job_table, pools, recommend, report
from rightpool.cli.calibrate import command as calibrate
from rightpool.cli.fleet_moves import fleet_moves, moves_document
from rightpool.cli.simulate.report import simulation_document
from rightpool.cli.simulate.runs import Played, Simulated
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.measurement import calibration, judged
from rightpool.simulation.backtest import Backtest
from rightpool.simulation.fleet_figures import FIGURES, PlayedFigures
from tests.unit.cli import test_profile
from tests.unit.cli.cluster import NOW, FakeClient, job, moment, running_status, two_pools, view_of
from tests.unit.cli.test_advise import advice
from tests.unit.cli.test_compare import compared
from tests.unit.cli.test_explain import KEY, _entry, with_job
from tests.unit.cli.test_fleet_moves import chained
from tests.unit.cli.test_report import SINCE, books
from tests.unit.cli.test_top import fleet, recommended, with_targets
from tests.unit.hardware.test_measurement import CATALOG, H100, read
from tests.unit.simulation import test_history
from tools.chartdocs.cli_schema import kinds, schema

Body = dict[str, Any]


def lines(client: FakeClient) -> Body:
    return job_table.document(job_table.ranked(view_of(client).jobs(None).values(), NOW), NOW, ("a note",))


def explained(client: FakeClient) -> Body:
    return explain.document(explain.explain(view_of(client), KEY, NOW))


def listed(client: FakeClient) -> Body:
    return explain.list_document(explain.explain_all(view_of(client), NOW), NOW, "no operator leads")


def in_a_move() -> FakeClient:
    here = {"pool": "a100", "chips": 4, "replicas": 1, "capacity": "OnDemand", "revision": 1, "workloadHash": "h"}
    made = {"requestedChips": 4, "requestedReplicas": 1, "createdAt": moment(500), "costPerHour": "20.28"}
    basis = [{"kind": "Demand", "number": "0.29"}, {"kind": "SameChip", "names": ["A100-SXM4-80GB"]}]
    migration = {
        "id": "d-2",
        "action": "Move",
        "phase": "Verifying",
        "startedAt": moment(100),
        "phaseStartedAt": moment(50),
        "from": here | made,
        "to": here | made | {"pool": "a10g", "revision": 2, "costPerHour": "4.02"},
        "reason": "CheaperPoolMeetsTargets",
        "message": "because",
        "predicted": {
            "median": "2443",
            "low": "2400",
            "high": "2500",
            "sd": "0.02",
            "shared": {"chip": "0.01"},
            "basis": basis,
        },
        "baseline": "6070",
    }
    return with_job(running_status(migration=migration))


def profiled() -> Body:
    model = {"precision": "bf16", "parameters": 124000000, "stepFlops": "2.1e12"}
    status = test_profile.measured(model=model)
    taken = {"id": "t-1", "state": "Captured", "since": moment(60), "ranks": test_profile.RANKS}
    status["trace"] = {**taken, "summary": test_profile.TRACED}
    return test_profile.body(test_profile.client(status))


def offers() -> Body:
    client = FakeClient()
    client.add(PROFILED_JOBS, job("some", status=recommended()))
    return recommend.offers_document(recommend.ranked_offers(view_of(client).jobs(None).values()), NOW)


def entries() -> Body:
    client = FakeClient()
    client.add(PROFILED_JOBS, job("one", status=running_status(history=[_entry(), _entry() | {"unit": "Steps"}])))
    return history.history_document(history.entries_of(view_of(client).jobs(None).values()), NOW)


def calibrated() -> Body:
    measured = read()
    found = calibration(measured, H100, judged(measured, H100, 8, CATALOG), node="node-1", now=NOW)
    return calibrate.document("h100", found, H100)


def played() -> Body:
    history, run = (
        test_history.of([test_history.record("one", 0.0, 1.0)]),
        PlayedFigures(1, 0, dict.fromkeys(FIGURES, 1.0)),
    )
    found = Played((run,))
    return simulation_document(Simulated(history, Backtest(0, 0, 0.0, 0.0, 0.0), run, found, found, ("a100",), ()))


def reported(by: str) -> Body:
    return report.document(report.charges(books(), by, SINCE), by, SINCE, NOW, NOW)


DOCUMENTS: dict[str, Body] = {
    "top": lines(fleet()),
    "top with targets": lines(with_targets()),
    "top of nothing": lines(FakeClient()),
    "explain": explained(with_job(running_status(history=[_entry()]))),
    "explain in a move": explained(in_a_move()),
    "explain what is recommended": explained(with_job(recommended())),
    "explain before the first start": explained(with_job({"conditions": []})),
    "profile": profiled(),
    "profile of a job that was not measured": test_profile.body(test_profile.client({"conditions": []})),
    "explain of a namespace": listed(with_job()),
    "pools": pools.document(view_of(two_pools()).fleet(), NOW),
    "pools --accelerators": pools.accelerators_document(load_catalog()),
    "recommend": offers(),
    "recommend --fleet": moves_document(fleet_moves(view_of(chained()), NOW), NOW),
    "history": entries(),
    "calibrate": calibrated(),
    "compare": compared(),
    "advise": advice(),
    "simulate": played(),
    **{
        f"report --by {by}": report.document(report.charges(books(), by, SINCE), by, SINCE, NOW, NOW)
        for by in report.BY
    },
}


@cache
def validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(schema(kind))


def test_the_schema_is_one() -> None:
    """All of it at once. A kind's own differs in the reference to its definition alone."""
    Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_keeps_the_schema(name: str) -> None:
    document = DOCUMENTS[name]
    validator(document["kind"]).validate(document)


def test_every_kind_that_a_command_prints_has_a_schema_and_a_document_here() -> None:
    sources = Path(rightpool.cli.__file__).parent.rglob("*.py")
    ours = re.compile(r'document_head\("(\w+)"')
    printed = {kind for path in sources for kind in ours.findall(path.read_text(encoding="utf-8"))}
    assert printed == kinds().keys()
    assert {document["kind"] for document in DOCUMENTS.values()} == kinds().keys()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("top", {"extra": 1}),
        ("top", {"asOf": 5}),
        ("history", {"items": [{"namespace": "a", "name": "b", "entry": {"baseline": "1"}}]}),
        ("explain", {"decision": {"action": "Fly", "reason": "Cheapest", "message": "", "target": None}}),
    ],
)
def test_the_schema_refuses_what_is_not_printed(name: str, change: Body) -> None:
    document = DOCUMENTS[name]
    with pytest.raises(ValidationError):
        validator(document["kind"]).validate(document | change)
