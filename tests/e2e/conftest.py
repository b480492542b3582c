"""The set-up and the four stories, run once for all tests of this folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.__main__ import tell
from demo.job import Job
from demo.stage import Stage, forget, prepare
from demo.stories import AFTERWARDS, TOGETHER
from devcluster import cluster
from devcluster.cluster import Running
from devcluster.progress import Progress
from devcluster.spec import TEST


@dataclass(frozen=True)
class StoryResults:
    """The result of each story. since: Unix time at which the first began."""

    since: float
    jobs: dict[str, Job | Exception]


@pytest.fixture(scope="session")
def running(kubeconfig: Path) -> Running:
    """The embedded test cluster."""
    if kubeconfig != TEST.kubeconfig:
        pytest.skip("the stories need the embedded cluster: its simulated pools and its node for real pods")
    return cluster.running(TEST)


@pytest.fixture(scope="session")
def stage(running: Running) -> Stage:
    """The cluster with the chart installed, without pools that operators of other tests discovered."""
    if running.kubectl("get", "crd", "acceleratorpools.rightpool.dev", "--ignore-not-found", "--output=name"):
        running.kubectl("delete", "acceleratorpools", "--selector=rightpool.dev/source=discovered")
    return prepare(running, Progress())


@pytest.fixture(scope="session")
def story_results(stage: Stage) -> StoryResults:
    """Stories that are independent of each other run side by side."""
    since = time.time()
    say: Callable[[str], None] = Progress().say
    for namespace in sorted({story.namespace for story in TOGETHER + AFTERWARDS}):
        forget(stage, namespace)
    return StoryResults(since, tell(stage, TOGETHER, say) | tell(stage, AFTERWARDS, say))
