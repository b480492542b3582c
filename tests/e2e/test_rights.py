"""The operator's requests during the seven stories, compared with the rights in the chart."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from demo.stage import RELEASE, SYSTEM, Stage
from devcluster.cluster import Running

from ..integration.security.rights import SOMETIMES, UNASKED, Asked, Right, asked, covered, granted
from .conftest import StoryResults

pytestmark = pytest.mark.cluster

# Granted, but unused when all goes well and soon. tests/integration/security covers each of them.
RARE = {
    ("", "services", "get"): "only where a Service of that name is there already: whose is it?",
    ("", "services", "delete"): "only where it has outlived an earlier Job of that name",
    (
        "",
        "configmaps",
        "delete",
    ): "only of a server that was deleted: see tests/unit/runtime/act/test_demand_records.py",
    ("", "services", "list"): "only while there is a server: see tests/integration/runtime/test_servers.py",
    ("", "configmaps", "update"): "only where books are stored again, after five minutes or at the end of the operator",
}


USER = f"system:serviceaccount:{SYSTEM}:{RELEASE}"


@pytest.fixture(scope="module")
def seen(story_results: StoryResults, running: Running) -> Asked:
    """Since the stories began: another release may have been installed and taken away before."""
    since = datetime.fromtimestamp(story_results.since, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return asked(_logs(running), USER, since)


def _logs(running: Running) -> list[Path]:
    return sorted(running.spec.logs.glob("audit*.log"))


@pytest.fixture(scope="module")
def rights(stage: Stage) -> frozenset[Right]:
    return granted(stage.kubectl, SYSTEM, RELEASE)


def test_nothing_was_refused(seen: Asked) -> None:
    assert seen.refused == set()


def test_everything_that_was_asked_for_is_granted_by_the_chart(seen: Asked, rights: frozenset[Right]) -> None:
    """And not by another role, such as one for all accounts."""
    assert [right for right in sorted(seen.rights) if not covered(right, rights)] == []


def test_every_right_was_used(story_results: StoryResults, running: Running, rights: frozenset[Right]) -> None:
    """In the whole log, which includes the start of the operator."""
    used = {right.plain for right in asked(_logs(running), USER).rights}
    unused = {right.plain for right in rights} - used
    assert unused - UNASKED - SOMETIMES - RARE.keys() == set()
    assert RARE.keys() <= {right.plain for right in rights}, "a right that is granted no more is no exception"
