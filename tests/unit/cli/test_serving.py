"""`explain --requests-per-second R --p99 SECONDS`: what serving would take at each placement, and why not."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rightpool.cli import explain as module
from rightpool.cli.explain import document
from rightpool.cli.explained import Demand, Serving, ServingVerdict
from rightpool.cli.explanation import print_explanation
from rightpool.cli.main import main
from rightpool.cli.serving import serving
from tests.unit.cli.cluster import printed, profile, running_status
from tests.unit.cli.test_explain import explained, with_job
from tools.chartdocs.cli_schema import schema

BATCH = 1026
"""Of the job of the tests: 6070 samples a second, 0.169 s a step."""


def served(requests: float, limit: float, changes: dict[str, Any] | None = None, **spec: Any) -> Serving:
    status = None if changes is None else running_status(profile=profile(**changes))
    return serving(explained(with_job(status, **spec)), Demand(requests, limit))


def by_pool(found: Serving) -> dict[str, Any]:
    return {one.candidate.placement.pool: one for one in found.candidates}


def documented(found: Serving) -> dict[str, Any]:
    body = document(replace(explained(with_job()), serving=found))
    json.dumps(body, allow_nan=False)
    Draft202012Validator(schema("Explanation")).validate(body)
    result: dict[str, Any] = body["serving"]
    return result


def test_the_cheapest_placement_that_holds_comes_first() -> None:
    found = served(1000.0, 1.0)
    assert found.batch == BATCH
    assert [one.verdict for one in found.candidates] == [ServingVerdict.HOLDS] * 2
    costs = [one.cost() or 0.0 for one in found.candidates]
    assert costs == sorted(costs) and costs[0] > 0.0
    for one in found.candidates:
        assert one.probability is not None and one.probability >= 0.9 - 1e-6
        assert one.tail is not None and one.half is not None and one.alone is not None
        assert one.half.median <= one.tail.median and one.tail.high <= 1.0 + 1e-6
        assert one.alone.median <= one.tail.median


def test_costs_are_those_of_all_replicas() -> None:
    first = by_pool(served(14_000.0, 0.5))["a100"]
    assert first.needed is not None and first.needed >= 3, "one replica does 6070 a second"
    body = documented(served(14_000.0, 0.5))["candidates"]
    mine = next(one for one in body if one["pool"] == "a100")
    assert mine["costPerHour"] == pytest.approx(first.needed * 20.28)
    assert mine["costPerMillionRequests"] == pytest.approx(first.needed * 20.28 / 3600 / 14_000 * 1e6)


def test_more_requests_need_more_replicas_and_a_tighter_limit_serves_less() -> None:
    few, many = by_pool(served(1000.0, 0.5))["a100"], by_pool(served(9000.0, 0.5))["a100"]
    assert many.needed > few.needed
    loose, tight = by_pool(served(1000.0, 0.5))["a100"], by_pool(served(1000.0, 0.15))["a100"]
    assert tight.servable.median < loose.servable.median


def test_a_request_that_takes_too_long_by_itself() -> None:
    found = served(1000.0, 0.001)
    assert {one.verdict for one in found.candidates} == {ServingVerdict.TOO_SLOW_ALONE}
    messages = [one["message"] for one in documented(found)["candidates"]]
    assert all("one request by itself takes" in message and "within 1 ms" in message for message in messages)


def test_a_pool_with_fewer_replicas_than_needed() -> None:
    found = by_pool(served(100_000.0, 0.5))["a10g"]
    assert found.verdict is ServingVerdict.POOL_TOO_SMALL
    message = next(one for one in documented(served(100_000.0, 0.5))["candidates"] if one["pool"] == "a10g")["message"]
    assert f"needs {found.needed} replicas of 4 chips of a10g, and the pool has 8 chips: 2 replicas" in message
    assert "times what they serve" in message


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({"samplesPerSecond": None}, ServingVerdict.RATE_UNKNOWN, "no rate"),
        ({"samplesPerSecond": None, "stepsPerSecond": "5.9"}, ServingVerdict.STEPS_NOT_REQUESTS, "samplesPerStep"),
        ({"stepSeconds": None}, ServingVerdict.BATCH_UNKNOWN, "samplesPerStep"),
    ],
)
def test_why_nothing_can_be_told(changes: dict[str, Any], verdict: ServingVerdict, words: str) -> None:
    found = served(100.0, 0.1, changes)
    assert found.refusal is verdict and not found.candidates
    body = documented(found)
    assert body["reason"] == verdict.value and words in body["message"]


def test_a_job_that_was_never_measured() -> None:
    found = serving(explained(with_job({"conditions": []})), Demand(100.0, 0.1))
    assert found.refusal is ServingVerdict.RATE_UNKNOWN


def test_a_ruled_out_pool_is_told_as_such() -> None:
    found = by_pool(served(100.0, 1.0, placement={"pools": {"allow": ["a100"]}}))
    assert found["a10g"].verdict is ServingVerdict.RULED_OUT
    assert found["a100"].verdict is ServingVerdict.HOLDS


def test_a_pool_that_is_gone_gives_no_replica() -> None:
    found = explained(with_job())
    pools = {name: pool for name, pool in found.pools.items() if name != "a100"}
    gone = by_pool(serving(replace(found, pools=pools), Demand(100.0, 1.0)))["a100"]
    assert gone.verdict is ServingVerdict.POOL_TOO_SMALL and gone.reach == 0


def test_the_batch_grows_with_the_chips_where_the_job_says_so() -> None:
    sizes = {"minChips": 4, "maxChips": 8}
    alone = {}
    for kind in ("PerChip", "Global"):
        found = served(100.0, 1.0, elasticity=sizes | {"batch": kind})
        for one in found.candidates:
            place = one.candidate.placement
            alone[kind, place.pool, place.chips] = one.alone.median if one.alone is not None else 0.0
    # The same step with twice the batch: a longer one, of which a request alone takes the fixed part.
    assert alone["PerChip", "a100", 8] > alone["Global", "a100", 8] > 0.0
    assert alone["PerChip", "a100", 4] == alone["Global", "a100", 4]


def test_a_batch_that_the_program_tells_counts() -> None:
    found = served(100.0, 1.0, {"model": {"batch": 64}})
    assert found.batch == 64


def test_counters_bound_what_grows_with_the_batch() -> None:
    unknown = served(100.0, 1.0, {"chipBusy": None, "matrixActive": None, "computeActive": None})
    busy_matrix = served(100.0, 1.0, {"matrixActive": "0.95", "computeActive": "0.97"})
    waits = served(100.0, 1.0, {"chipBusy": "0.4", "computeActive": "0.3", "matrixActive": "0.1", "inputWait": "0"})
    assert unknown.fixed and busy_matrix.fixed and waits.fixed
    assert busy_matrix.fixed[1] <= 0.05 + 1e-9 < unknown.fixed[1]
    assert waits.fixed[0] > 0.3 > unknown.fixed[0]


def test_the_page_has_a_row_for_each_placement_and_says_what_is_assumed() -> None:
    found = explained(with_job())
    page, stream = printed()
    print_explanation(page, replace(found, serving=serving(found, Demand(1000.0, 0.5))))
    text = stream.getvalue()
    assert "Would serve 1000 requests/s, 99% within 500 ms" in text
    assert "P(HOLDS)" in text and "$/M REQUESTS" in text and "not to grow with the batch" in text
    assert text.index("Decision") < text.index("Could be") < text.index("Would serve")


def test_without_being_asked_nothing_is_told() -> None:
    assert document(explained(with_job()))["serving"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["job", "--p99", "0.1"], "belong together"),
        (["job", "--requests-per-second", "10"], "belong together"),
        (["--requests-per-second", "10", "--p99", "0.1"], "name it"),
    ],
)
def test_a_demand_is_whole_and_about_one_job(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def connected(arguments: Any, name: str, work: Any) -> int:
        try:
            work(None)
        except module.CliError as error:
            print(error)
            return 1
        return 0

    monkeypatch.setattr(module, "carry_out", connected)
    monkeypatch.setattr(module, "repeated", lambda work, seconds: work)
    assert main(["explain", *words]) == 1
    assert message in capsys.readouterr().out


def test_serving_is_loaded_where_it_is_asked_for() -> None:
    program = "import sys, rightpool.cli.explain; print('rightpool.prediction.serving' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.strip() == "False"
