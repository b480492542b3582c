"""What the demo's stories say of promises."""

import pytest

from demo.stories import promise_text
from rightpool.api.estimate import Estimate

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
