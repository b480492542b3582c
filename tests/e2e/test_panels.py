"""Every query of every Grafana panel has data after the seven stories."""

from __future__ import annotations

import pytest

from devcluster.cluster import Running
from tests.patience import eventually
from tools.dashboards.answers import ask, filled, panel_queries, unanswered, variable_queries

from .conftest import StoryResults

pytestmark = pytest.mark.cluster

# Panels without data after seven successful stories.
RARE = {
    ("Rightpool / Chargeback", "Energy a step"): "samples are seen in each program of the stories",
    ("Rightpool / Chargeback", "Jobs that an edit made worse"): "no story edits a template",
    ("Rightpool / Chargeback", "Slower since an edit"): "no story edits a template",
    ("Rightpool / Fleet", "99% of requests within"): "Triton tells no distribution of its times",
    ("Rightpool / Job", "Chip errors"): "no chip breaks",
    ("Rightpool / Job", "Links"): "no chip here counts the bytes of its links",
    ("Rightpool / Predictions", "Worth of one more chip"): "no chips are wanted any more when the stories have ended",
}


def test_every_panel_has_data(story_results: StoryResults, running: Running) -> None:
    def wrong() -> list[str]:
        return [
            f"{query}: {problem}"
            for query, problem in unanswered(running.prometheus_url, since=story_results.since)
            if problem != "no data" or (query.dashboard, query.panel) not in RARE
        ]

    # On a busy machine some scrapes fail, and present values are missing then.
    eventually(lambda: wrong() == [], lambda: "\n".join(wrong()))


def test_every_variable_has_values_to_choose_from(story_results: StoryResults, running: Running) -> None:
    asked = dict(variable_queries())
    assert len(asked) > 3

    def empty() -> list[str]:
        return [name for name, query in asked.items() if not ask(running.prometheus_url, filled(query, {}))]

    eventually(lambda: empty() == [], lambda: str(empty()))


def test_every_rare_panel_is_there() -> None:
    assert RARE.keys() <= {(query.dashboard, query.panel) for query in panel_queries()}


def test_what_has_no_data_is_named(running: Running) -> None:
    """The check above can fail."""
    absent = {"namespace": "vision", "profiledjob": "absent"}
    of_jobs = [query for query in panel_queries() if query.dashboard == "Rightpool / Job"]
    found = [query for query, problem in unanswered(running.prometheus_url, absent) if problem == "no data"]
    assert [query for query in found if query.dashboard == "Rightpool / Job"] == of_jobs


def test_what_prometheus_refuses_is_told_in_its_words(running: Running) -> None:
    with pytest.raises(ValueError, match="parse error"):
        ask(running.prometheus_url, "sum(")
