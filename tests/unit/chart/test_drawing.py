"""Dashboards that are drawn without Grafana."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from tools.dashboards.drawing.answered import AnsweredBoard, answered_boards, legend
from tools.dashboards.drawing.page import page
from tools.dashboards.drawing.units import written

SINCE = 1.7e9


class Answers(BaseHTTPRequestHandler):
    """Two series for every query but those about energy: one with a gap, one that is no number."""

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        ranged = "start" in asked
        found = [] if "joules" in asked["query"][0] else [{"pod": "a<b>"}, {"pod": "c"}]
        moments = [SINCE + 10.0 * step for step in (0, 1, 2, 5, 6)]
        result = [
            {"metric": labels, "values": [[at, "0.25"] for at in moments]}
            if ranged
            else {"metric": labels, "value": [SINCE, "0.25"]}
            for labels in found
        ]
        body = json.dumps({"status": "success", "data": {"result": result}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def boards() -> Iterator[dict[str, AnsweredBoard]]:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield dict(answered_boards(f"http://127.0.0.1:{server.server_port}", SINCE, {"operator": "here"}))
        server.shutdown()


def test_every_panel_of_every_dashboard_is_drawn(boards: dict[str, AnsweredBoard]) -> None:
    assert boards.keys() == {"chargeback", "fleet", "job", "operator", "predictions"}
    for board in boards.values():
        text = page(board)
        assert text.count("<section") == len(board.panels)
        assert text.count("<img") == sum(panel.body["type"] == "timeseries" for panel in board.panels)
        assert "a<b>" not in text, "what Prometheus says is escaped"
    assert '<div class="none">none</div>' in page(boards["chargeback"]), "a panel without data says what that means"


def test_a_curve_ends_where_steps_are_missing(boards: dict[str, AnsweredBoard]) -> None:
    series = next(panel for panel in boards["fleet"].panels if panel.body["type"] == "timeseries").series[0]
    assert [at - SINCE for at in series.times] == [0, 10, 20, 30, 40, 50, 60]
    assert [value == value for value in series.values] == [True, True, True, False, False, True, True]


def test_values_have_their_unit() -> None:
    assert [written(value, "currencyUSD") for value in (0, 0.925, -12.5, 4321)] == ["$0", "$0.925", "-$12.5", "$4.32K"]
    assert [written(value, "s") for value in (0, 0.0004, 0.084, 90, 86400)] == [
        "0 s",
        "400 µs",
        "84 ms",
        "1.5 mins",
        "1 days",
    ]
    assert written(0.405, "percentunit") == "40.5%"
    assert written(2**29, "bytes") == "512 MiB"
    assert written(25_900, "short") == "25.9 K"
    with pytest.raises(KeyError):
        written(1.0, "furlongs")


def test_series_are_named_by_their_labels() -> None:
    assert legend("{{a}}/{{ b }}", {"a": "x"}) == "x/"
    assert legend("", {"__name__": "up", "b": "2", "a": "1"}) == 'a="1", b="2"'


def test_bars_have_no_colour_of_alarm(boards: dict[str, AnsweredBoard]) -> None:
    """Grafana's own thresholds colour everything from 80 on red."""
    for board in boards.values():
        for panel in board.panels:
            if panel.body["type"] == "bargauge":
                assert [step["color"] for step in panel.defaults["thresholds"]["steps"]] == ["blue"]
                assert (panel.defaults["unit"] != "percentunit") or panel.defaults["max"] == 1
    assert re.search(r"width: 25\.0%; background: #5794F2", page(boards["fleet"]))
