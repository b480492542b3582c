"""The set-up and the seven stories, run once for all tests of this folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from demo.__main__ import tell
from demo.job import Job
from demo.stage import Stage, forget, prepare
from demo.stories import STORIES
from devcluster import cluster as clusters
from devcluster import deps, host
from devcluster.cluster import Running
from devcluster.progress import Progress
from devcluster.spec import STORIES as STORIES_CLUSTER

REAL = "research"
SHARE = {"default": {"cpu": "150m"}, "type": "Container"}
"""Of a core, for each container of the real programs. They get it at any time, and what is measured does not swing with
what else the machine does: without a limit, a verdict took a quarter of an hour beside the other tests."""


@dataclass(frozen=True)
class StoryResults:
    """The result of each story. since: Unix time at which the first began."""

    since: float
    jobs: dict[str, Job | Exception]


@pytest.fixture(scope="session")
def running() -> Iterator[Running]:
    """A cluster of their own. KEEP=1 leaves it up, so that the next run starts faster."""
    if os.environ.get("RIGHTPOOL_TEST_KUBECONFIG"):
        pytest.skip("the stories need an embedded cluster: its simulated pools and its node for real pods")
    if not host.is_root() or deps.missing(root=True):
        pytest.skip("real pods need root and the packages of `python -m devcluster deps`")
    try:
        yield clusters.up(STORIES_CLUSTER, Progress(quiet=True))
    finally:
        if not os.environ.get("KEEP"):
            clusters.down(STORIES_CLUSTER)


@pytest.fixture(scope="session")
def stage(running: Running) -> Stage:
    """The cluster with the chart installed."""
    return prepare(running, Progress())


@pytest.fixture(scope="session")
def story_results(stage: Stage) -> StoryResults:
    """Those that are independent of each other run side by side."""
    since = time.time()
    say: Callable[[str], None] = Progress().say
    for namespace in sorted({story.namespace for story in STORIES}):
        forget(stage, namespace)
    stage.kubectl.apply(
        [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": REAL}},
            {
                "apiVersion": "v1",
                "kind": "LimitRange",
                "metadata": {"name": "share", "namespace": REAL},
                "spec": {"limits": [SHARE]},
            },
        ]
    )
    return StoryResults(since, tell(stage, STORIES, say))
