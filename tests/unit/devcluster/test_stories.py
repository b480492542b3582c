"""What the demo's stories say of promises, and in which order they are told."""

import threading
from pathlib import Path

import pytest

from demo.__main__ import tell
from demo.job import Job, StoryFailed
from demo.stage import Stage
from demo.stories import STORIES, promise_text
from demo.story import Say, Story
from devcluster.kubectl import Kubectl
from rightpool.api.estimate import Estimate
from tests.patience import PATIENCE

PROMISED = Estimate(1000.0, 0.1)  # 880 to 1137


@pytest.mark.parametrize(
    ("delivered", "words"),
    [
        (1000.0, "within the promised interval"),
        (890.0, "within the promised interval"),
        (860.0, "below the promised interval"),
        (1200.0, "above the promised interval"),
    ],
)
def test_a_story_says_whether_the_promise_was_kept(delivered: float, words: str) -> None:
    text = promise_text(PROMISED, delivered)
    assert words in text
    assert f"promised 1000 samples/s (880–1137), delivered {delivered:.0f}" in text


def test_a_story_waits_for_the_one_before_it_alone() -> None:
    """Also where that one fails, which is its result."""
    reached, begun = threading.Barrier(2, timeout=PATIENCE), list[str]()

    def short(stage: Stage, say: Say) -> Job:
        begun.append("short")
        raise StoryFailed("it did not happen")

    def after(stage: Stage, say: Say) -> Job:
        begun.append("after")
        reached.wait()  # the long one has not ended
        return Job({"metadata": {"name": "after"}})

    def long(stage: Stage, say: Say) -> Job:
        reached.wait()
        return Job({"metadata": {"name": "long"}})

    stories = (
        Story("", "", "long", long),
        Story("", "", "short", short),
        Story("", "", "after", after, after=("short",)),
    )
    results = tell(Stage(Kubectl(Path()), Path(), Path()), stories, print)
    assert begun == ["short", "after"]
    assert isinstance(results.pop("short"), StoryFailed)
    assert results.keys() == {"long", "after"} and all(isinstance(one, Job) for one in results.values())


def test_a_story_comes_after_the_one_that_it_waits_for() -> None:
    names = [story.name for story in STORIES]
    assert all(names.index(name) < names.index(story.name) for story in STORIES for name in story.after)
