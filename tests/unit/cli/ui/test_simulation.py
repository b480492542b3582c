"""The page that plays the jobs of the past says what `rightpool simulate` prints."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from benchmarks.fleet.made_month import made_month
from rightpool.cli.simulate.report import show_simulation
from rightpool.cli.simulate.runs import Simulated, simulated
from rightpool.cli.ui import simulation
from rightpool.cli.ui.charts import WIDTH, change_intervals
from rightpool.cluster.resources import CONFIG_MAPS
from rightpool.reporting.ended_jobs_object import EndedJobsPart, part_object
from tests.unit.cli.cluster import FakeClient, printed
from tests.unit.cli.ui.pages import browser_of, fleet
from tests.unit.cli.ui.test_server import words


def played() -> FakeClient:
    """The fleet, with the records of a day."""
    client, part = fleet(), EndedJobsPart()
    for number, record in enumerate(made_month(9, days=1.0)):
        if record.stays[0].placement.pool != "l4":  # which this fleet has not
            part.add(replace(record, uid=str(number)))
    client.add(CONFIG_MAPS, part_object("rightpool-system", 1, part, None))
    return client


@cache
def with_cheap_a100s() -> tuple[Simulated, str]:
    """What was found, and the page that shows it."""
    found: list[Simulated] = []

    def noted(*arguments: Any) -> Simulated:
        found.append(simulated(*arguments))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "simulated", noted)
        text = browser_of(played()).get("/simulate?pools=&prices=a100=0.5&objective=").text
    return found[0], text


def test_the_page_says_what_the_command_prints_and_draws_what_changes() -> None:
    found, text = with_cheap_a100s()
    page, stream = printed()
    show_simulation(found, page)
    shown = " ".join(words(text))
    for line in stream.getvalue().splitlines():
        assert " ".join(line.split()) in shown
    dollars = next(one for one in change_intervals(found) if one.where == "dollars")
    assert 0.0 <= dollars.low <= dollars.median <= dollars.high < WIDTH / 2, "cheaper: left of the middle"
    assert dollars.kind == "eligible" and dollars.text in shown


def test_without_changes_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = with_cheap_a100s()
    monkeypatch.setattr(simulation, "simulated", lambda *_: replace(found, what_if=None))
    answer = browser_of(played()).get("/simulate")
    assert "PLANNED ANEW" in answer.text and "WHAT IF" not in answer.text
    assert '<table class="intervals">' not in answer.text
    assert 'href="/simulate"' in browser_of(played()).get("/").text


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("pools=b200=8", "there is no pool b200; there are a100, a10g"),
        ("prices=a100=cheap", "write dollars for a chip-hour"),
        ("objective=Fastest", "Fastest is no objective: take MinimizeCost"),
    ],
)
def test_what_can_not_be_played_is_said(query: str, says: str) -> None:
    answer = browser_of(played()).get(f"/simulate?{query}")
    assert answer.status_code == 404
    assert says in " ".join(words(answer.text))


def test_without_records_the_page_says_so() -> None:
    client = FakeClient()
    answer = browser_of(client).get("/simulate")
    assert answer.status_code == 404
    assert "jobs are recorded when they end" in " ".join(words(answer.text))
