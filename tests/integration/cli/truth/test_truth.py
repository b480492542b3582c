"""No statement that users get about a fleet in known states is untrue."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devcluster.spec import TEST
from rightpool.cluster.client import ClusterClient
from tests.integration.cli.truth.asking import Statement
from tests.integration.cli.truth.changes import (
    of_a_spent_budget,
    of_a_wrong_approval,
    of_edits,
    of_how_many_events,
    of_targets,
    of_what_the_child_is_given,
)
from tests.integration.cli.truth.scene import Scene, known_scene
from tests.integration.cli.truth.statements import (
    Statements,
    of_approval,
    of_conditions,
    of_events,
    of_explain,
    of_history,
    of_kubectl,
    of_no_operator,
    of_page,
    of_pools,
    of_recommend,
    of_report,
    of_spending,
    of_top,
)
from tests.integration.runtime.conftest import client

__all__ = ["client"]
pytestmark = pytest.mark.cluster

LEAST = 60
"""Statements that are compared at least."""

AREAS: tuple[Callable[[Scene], Statements], ...] = (
    of_top,
    of_spending,
    of_explain,
    of_pools,
    of_recommend,
    of_history,
    of_kubectl,
    of_conditions,
    of_events,
    of_page,
    of_report,
    of_how_many_events,
    of_what_the_child_is_given,
    # These change the fleet.
    of_targets,
    of_a_wrong_approval,
    of_approval,
    of_edits,
    of_a_spent_budget,
    of_no_operator,
)


@pytest.fixture(scope="module")
def scene(kubeconfig: Path, client: ClusterClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    if kubeconfig != TEST.kubeconfig:
        pytest.skip("known rates need the simulated nodes of the embedded cluster")
    if os.geteuid() != 0:
        pytest.skip("simulated pods answer only in network namespaces, and those need root")
    with known_scene(kubeconfig, client, tmp_path_factory.mktemp("truth")) as made:
        yield made


@pytest.fixture(scope="module")
def asked() -> list[Statement]:
    """All statements so far."""
    return []


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.__name__.removeprefix("of_"))
def test_nothing_untrue_is_said(area: Callable[[Scene], Statements], scene: Scene, asked: list[Statement]) -> None:
    statements = list(area(scene))
    asked += statements
    untrue = [f"{each.about}: {each.answer}" for each in statements if not each.true]
    assert not untrue, "\n".join((f"{len(untrue)} of {len(statements)} are untrue:", *untrue))


def test_enough_was_asked(asked: list[Statement]) -> None:
    assert len({each.about for each in asked}) >= LEAST
