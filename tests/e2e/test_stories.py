"""The demo's four stories, end to end: the chart, the operator as pods, real and simulated pods, a real Prometheus."""

from collections.abc import Callable
from pathlib import Path

import pytest

from demo.__main__ import tell
from demo.job import Job
from demo.stage import Stage, logs, prepare
from demo.stories import AFTERWARDS, TOGETHER, Story
from devcluster import cluster
from devcluster.progress import Progress
from devcluster.spec import TEST

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="session")
def stage(kubeconfig: Path) -> Stage:
    """The embedded test cluster with the chart installed."""
    if kubeconfig != TEST.kubeconfig:
        pytest.skip("the stories need the embedded cluster: its simulated pools and its node for real pods")
    return prepare(cluster.running(TEST), Progress())


@pytest.fixture(scope="session")
def told(stage: Stage) -> dict[str, Job | Exception]:
    """What came of each story; those that do not disturb each other run side by side."""
    say: Callable[[str], None] = Progress().say
    return tell(stage, TOGETHER, say) | tell(stage, AFTERWARDS, say)


@pytest.mark.parametrize("story", TOGETHER + AFTERWARDS, ids=lambda story: story.name)
def test_story(story: Story, told: dict[str, Job | Exception], stage: Stage) -> None:
    result = told[story.name]
    if isinstance(result, Exception):
        pytest.fail(f"{story.title}: {result}\n\nthe operator's last lines:\n{logs(stage.kubectl)}")
    assert result.history, "every story ends with an entry in the ledger"


@pytest.mark.parametrize("story", TOGETHER, ids=lambda story: story.name)
def test_explain_agrees_with_the_status(story: Story, told: dict[str, Job | Exception], stage: Stage) -> None:
    result = told[story.name]
    assert isinstance(result, Job), str(result)
    text = stage.rightpool("explain", story.name, "-n", story.namespace)
    assert result.pool is not None and result.pool in text
    assert result.history[-1]["id"] in text
