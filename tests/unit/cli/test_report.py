"""`rightpool report`: sums, formats and what it refuses."""

from __future__ import annotations

import argparse
import csv
import io
import json
from typing import Any

import pytest

from rightpool.cli import report as module
from rightpool.cli.main import main
from rightpool.cli.report import as_csv, as_html, charges, days, document, first_day, with_unused
from rightpool.cluster.resources import CONFIG_MAPS
from rightpool.planning.books.charge import Charge
from rightpool.planning.books.chargeback import OTHER_JOBS, Chargeback, ChargeKey
from rightpool.planning.books.pool_costs import PoolCost, PoolCosts
from rightpool.reporting.chargeback_object import config_map
from rightpool.reporting.pool_costs_object import pool_costs_object

NOW = 1_800_000_000.0  # 2027-01-15, 8:00
# The Lease of an operator that ended ten minutes ago.
ENDED = {
    "metadata": {"name": "rightpool-operator"},
    "spec": {"holderIdentity": "", "renewTime": "2027-01-15T07:50:00Z", "leaseDurationSeconds": 15},
}


def books() -> dict[str, Chargeback]:
    vision, language = Chargeback(), Chargeback()
    vision.rows = {
        "2027-01-15": {ChargeKey("seg", "a100", "OnDemand"): Charge(100.0, 30.0, 5.0, 36_000.0, 27_000.0)},
        "2026-12-17": {ChargeKey("seg", "a10g", "Spot"): Charge(7.0, 0.0, 0.0, 3600.0, 3600.0)},
        "2026-12-16": {ChargeKey("seg", "a10g", "Spot"): Charge(1000.0)},
        "": {ChargeKey("seg", "a100", "OnDemand"): Charge(5000.0)},
    }
    language.rows = {"2027-01-14": {ChargeKey("=1+1", "a100", "OnDemand"): Charge(200.0, 0.0, 1.0, 0.0, 0.0)}}
    return {"vision": vision, "language": language}


SINCE = first_day(30, NOW)


def test_thirty_days_with_today() -> None:
    assert SINCE == "2026-12-17"
    assert first_day(days("1d"), NOW) == "2027-01-15"


@pytest.mark.parametrize("text", ["0d", "63d", "30", "-1d", "1h", ""])
def test_days_that_are_not_kept_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="1d to 62d"):
        days(text)


def test_wrong_days_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["report", "--since", "100d"])
    assert ended.value.code == 2 and "--since: 100d: write a number of days" in capsys.readouterr().err


def test_sums_by_namespace_highest_first() -> None:
    made = document(charges(books(), "namespace", SINCE), "namespace", SINCE, NOW, None)
    assert made["rows"] == [
        {
            "namespace": "language",
            "spent": 200.0,
            "saved": -1.0,
            "savedLow": -1.0,
            "savedHigh": -1.0,
            "chipHours": 0.0,
            "goodput": None,
        },
        {
            "namespace": "vision",
            "spent": 107.0,
            "saved": 25.0,
            "savedLow": 25.0,
            "savedHigh": 25.0,
            "chipHours": 11.0,
            "goodput": 0.773,
        },
    ]
    assert made["total"]["spent"] == 307.0


def test_by_day_in_their_order_and_to_the_same_total() -> None:
    by_day = charges(books(), "day", SINCE)
    assert [(name, charge.spent) for name, charge in by_day] == [
        ("2026-12-17", 7.0),
        ("2027-01-14", 200.0),
        ("2027-01-15", 100.0),
    ]
    totals = [document(charges(books(), by, SINCE), by, SINCE, NOW, None)["total"] for by in ("day", "pool")]
    assert totals[0] == totals[1]


def test_by_pool() -> None:
    assert [(name, charge.spent) for name, charge in charges(books(), "pool", SINCE)] == [
        ("a100", 300.0),
        ("a10g", 7.0),
    ]


def test_by_job_with_those_that_are_not_kept_apart() -> None:
    kept = books()
    kept["vision"].jobs.rows = {
        "2027-01-15": {"bert": Charge(90.0, 30.0, 5.0, 36_000.0, 27_000.0), OTHER_JOBS: Charge(10.0)},
        "2026-12-16": {"old": Charge(1000.0)},
    }
    kept["language"].jobs.rows = {"2027-01-14": {"bert": Charge(200.0)}}
    rows = charges(kept, "job", SINCE)
    assert [(name, charge.spent) for name, charge in rows] == [
        ("language/bert", 200.0),
        ("vision/bert", 90.0),
        ("vision/(others)", 10.0),
    ]
    assert document(rows, "job", SINCE, NOW, None)["rows"][0]["job"] == "language/bert"


def test_a_label_is_no_formula_and_no_markup() -> None:
    rows = charges(books(), "team", SINCE)
    table = list(csv.DictReader(io.StringIO(as_csv(rows, "team"))))
    assert [row["team"] for row in table] == ["'=1+1", "seg"]
    assert "<b>" not in as_html([("<b>", Charge(1.0))], "team", SINCE, None)


@pytest.mark.parametrize("output", ["table", "csv", "json", "html"])
def test_it_reads_the_operators_books(output: str, monkeypatch: Any, capsys: Any) -> None:
    kept = books()
    kept["vision"].newest, kept["language"].newest = NOW - 600.0, NOW
    objects = [config_map("rightpool-system", namespace, each, None) for namespace, each in kept.items()]
    asked = []

    class Client:
        def list_all(self, resource: Any, namespace: str, labels: str | None = None) -> list[Any]:
            asked.append((resource.plural, namespace))
            return objects if resource is CONFIG_MAPS else [ENDED]

    def carried_out(arguments: Any, command: str, work: Any) -> int:
        work(module.Connection(Client(), "default"))  # type: ignore[arg-type]
        return 0

    monkeypatch.setattr(module, "carry_out", carried_out)
    monkeypatch.setattr(module.time, "time", lambda: NOW)
    from rightpool.cli.main import main

    assert main(["report", "--since", "30d", "-o", output, "-n", "vision"]) == 0
    text = capsys.readouterr().out
    assert asked == [("configmaps", "rightpool-system"), ("leases", "rightpool-system")]
    assert "vision" in text and "language" not in text and "107" in text
    if output == "json":
        found = json.loads(text)
        assert (found["kind"], found["bookedUntil"]) == ("ChargebackReport", "2027-01-15T07:50:00Z")
        assert "no operator leads since 10 min" in found["notes"][0]
    elif output == "table":
        assert "the newest entry was booked 10 min ago: later use is not in it yet" in text
        assert "no operator leads since 10 min" in text
    elif output == "html":
        assert "Booked until 2027-01-15T07:50:00Z" in text


def test_what_is_doubtful_about_savings_is_shown() -> None:
    page = as_html([("a", Charge(10.0, 20.0, saved_variance=4.0)), ("b", Charge(1.0))], "team", SINCE, None)
    assert "<td>$20.00 ± $2.56</td>" in page and "<td>$0.00</td>" in page


COSTS = PoolCosts(
    {
        ("2027-01-15", "a100"): PoolCost(400.0, 250.0),
        ("2027-01-14", "a100"): PoolCost(320.5, 100.25),
        ("2027-01-13", "idle"): PoolCost(48.0, 48.0),
        ("2026-12-16", "a100"): PoolCost(900.0, 900.0),
    },
    NOW,
)


@pytest.mark.parametrize("by", ["day", "pool"])
def test_what_is_spent_idle_and_others_is_what_the_chips_cost(by: str) -> None:
    costs = COSTS.sums(by, SINCE)
    rows = with_unused(charges(books(), by, SINCE), by, costs)
    made = document(rows, by, SINCE, NOW, None, (), costs)
    for row in [*made["rows"], made["total"]]:
        assert row["spent"] + row["idle"] + row["others"] == pytest.approx(row["poolCost"])
    assert made["total"]["idle"] == 398.25 and made["total"]["poolCost"] == 768.5
    assert sum(row["idle"] for row in made["rows"]) == made["total"]["idle"]
    found = {row[by]: row["idle"] for row in made["rows"]}
    unused = {"2027-01-13": 48.0, "2027-01-15": 250.0} if by == "day" else {"idle": 48.0, "a100": 350.25}
    assert found.items() >= unused.items()
    table = list(csv.DictReader(io.StringIO(as_csv(rows, by, costs))))
    assert sum(float(row["idle"]) for row in table) == pytest.approx(398.25)
    if by == "day":
        assert [row["day"] for row in table] == sorted(row["day"] for row in table)


@pytest.mark.parametrize(
    "words", [("--by", "day"), ("--by", "pool"), ("--by", "team"), ("--by", "day", "-n", "vision")]
)
def test_idle_chips_are_of_all_namespaces(words: tuple[str, ...], monkeypatch: Any, capsys: Any) -> None:
    where = "rightpool-system"
    objects = [config_map(where, namespace, each, None) for namespace, each in books().items()]
    objects.append(pool_costs_object(where, "rightpool-pool-costs", COSTS, None))

    class Client:
        def list_all(self, resource: Any, namespace: str, labels: str = "") -> list[Any]:
            return [one for one in objects if resource is CONFIG_MAPS and labels in one["metadata"]["labels"]]

    def carried_out(arguments: Any, command: str, work: Any) -> int:
        work(module.Connection(Client(), "default"))  # type: ignore[arg-type]
        return 0

    monkeypatch.setattr(module, "carry_out", carried_out)
    monkeypatch.setattr(module.time, "time", lambda: NOW)
    assert main(["report", *words]) == 0
    text = " ".join(capsys.readouterr().out.split())
    shown = words in (("--by", "day"), ("--by", "pool"))
    assert ("IDLE OTHERS ALL CHIPS" in text) is shown
    sentence = "the chips cost $768.50: $307.00 for these jobs, $398.25 idle, $63.25 for others or not booked yet"
    assert (sentence in text) is shown
