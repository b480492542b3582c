"""`rightpool explain` with the operator's books, as far as the user may read them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.cli.explain import explain_all
from rightpool.cli.explained import Explanation
from rightpool.cluster.resources import CONFIG_MAPS
from rightpool.planning.jobs.job import Job
from rightpool.reporting.chargeback_object import config_map
from tests.unit.cli.cluster import NOW, view_of
from tests.unit.cli.test_explain import explained, with_job
from tests.unit.planning.test_fleet_experience import booked, moved


def moves_on_these_chips() -> list[Job]:
    """Between the kinds of chips that the pools have."""
    found = []
    for job in (moved(number, 60.0) for number in range(10)):
        history = tuple(
            replace(entry, source_chip="A100-SXM4-80GB", target_chip="A10G-24GB") for entry in job.state.history
        )
        found.append(job.with_state(replace(job.state, history=history)))
    return found


def rate_on_a10g(found: Explanation) -> float:
    rates = [one.throughput for one in found.assessment.candidates if one.placement.pool == "a10g"]
    assert rates[0] is not None
    return rates[0].median


def test_moves_of_deleted_jobs_count_as_for_the_operator() -> None:
    alone = rate_on_a10g(explained(with_job()))
    client = with_job()
    client.add(CONFIG_MAPS, config_map("rightpool-system", "vision", booked(moves_on_these_chips()), None))
    assert rate_on_a10g(explained(client)) > 1.3 * alone
    ((_, listed),) = explain_all(view_of(client), NOW)
    rates = [one.throughput for one in listed.candidates if one.placement.pool == "a10g"]
    assert rates[0] is not None and rates[0].median > 1.3 * alone
    client.hidden.add(CONFIG_MAPS)
    found = explained(client)
    assert rate_on_a10g(found) == pytest.approx(alone)
    assert any(note.startswith("what moves of deleted jobs have shown is left out: configmaps") for note in found.notes)


def test_books_that_a_tenant_has_written_do_not_count() -> None:
    alone = rate_on_a10g(explained(with_job()))
    client = with_job()
    client.add(CONFIG_MAPS, config_map("vision", "vision", booked(moves_on_these_chips()), None))
    assert rate_on_a10g(explained(client)) == pytest.approx(alone)


def test_books_that_can_not_be_read_are_named() -> None:
    client = with_job()
    body = config_map("rightpool-system", "vision", booked([]), None)
    client.add(CONFIG_MAPS, body | {"data": {}})
    (note,) = (note for note in explained(client).notes if "deleted jobs" in note)
    assert note.endswith("the books of vision can't be read: data has no chargeback.csv")
