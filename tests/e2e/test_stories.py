"""The demo's seven stories, end to end: the chart, the operator as pods, real and simulated pods, a real Prometheus."""

import pytest

from demo.job import Job
from demo.stage import Stage, logs
from demo.stories import STORIES
from demo.story import Story

from .conftest import StoryResults

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_story(story: Story, story_results: StoryResults, stage: Stage) -> None:
    result = story_results.jobs[story.name]
    if isinstance(result, Exception):
        pytest.fail(f"{story.title}: {result}\n\nthe operator's last lines:\n{logs(stage.kubectl)}")
    assert result.history, "every story ends with an entry in the ledger"


@pytest.mark.parametrize("story", [story for story in STORIES if story.stays], ids=lambda story: story.name)
def test_explain_agrees_with_the_status(story: Story, story_results: StoryResults, stage: Stage) -> None:
    result = story_results.jobs[story.name]
    assert isinstance(result, Job), str(result)
    text = stage.rightpool("explain", story.name, "-n", story.namespace)
    assert result.pool is not None and result.pool in text
    assert result.history[-1]["id"] in text
