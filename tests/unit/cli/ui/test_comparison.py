"""The page that compares accelerators says what `rightpool compare` prints."""

from __future__ import annotations

import pytest

from rightpool.cli.compare.comparison import job_comparison
from rightpool.cli.compare.report import show_comparison
from rightpool.cli.compare.score import Weights
from rightpool.hardware.ownership import CostBook
from rightpool.planning.jobs.job import JobKey
from tests.unit.cli.cluster import NOW, printed, view_of
from tests.unit.cli.ui.pages import browser_of, fleet
from tests.unit.cli.ui.test_server import words


def test_accelerators_are_compared_as_compare_prints_them() -> None:
    client = fleet()
    key, weights = JobKey("vision", "resnet50"), Weights()
    page, stream = printed()
    show_comparison(job_comparison(view_of(client), key, ("a10g", "TPU-v5e"), CostBook(), weights, NOW), page)
    answer = browser_of(client).get("/jobs/vision/resnet50/compare?against=a10g,TPU-v5e")
    shown = " ".join(words(answer.text))
    for line in stream.getvalue().splitlines():
        assert " ".join(line.split()) in shown
    assert "fails image" in shown
    assert answer.text.count('<tr class="eligible">') == 2 and '<tr class="rejected">' in answer.text
    assert 'href="/jobs/vision/resnet50/compare"' in browser_of(client).get("/jobs/vision/resnet50").text
    assert "/compare" not in browser_of(client).get("/jobs/research/waiting").text


@pytest.mark.parametrize(
    ("name", "query", "says"),
    [
        ("resnet50", "?against=L5", "--against: unknown accelerator 'L5'"),
        ("resnet50", "?weights=speed=1", "--weights: "),
        ("waiting", "", "no "),
    ],
)
def test_what_can_not_be_compared_is_said(name: str, query: str, says: str) -> None:
    namespace = "research" if name == "waiting" else "vision"
    answer = browser_of(fleet()).get(f"/jobs/{namespace}/{name}/compare{query}")
    assert answer.status_code == 404
    assert says in " ".join(words(answer.text))
