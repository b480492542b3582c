"""The tutorial's output is taken from a complete run of the demo."""

from __future__ import annotations

import re

import pytest

from tools.docs import tutorial

LOG = """[   1s] 17 nodes are Ready
[  20s] scaling: Placed=True Running: r1 on dev
[  20s] scaling: runs on 2 chips of dev for $0.1 an hour
[  21s] scaling: Degraded=False Healthy:
[  30s] scaling: the move is kept: {long}
[  31s] resnet50: moves: 4 chips of a10g: 30% less than now; predicted 1715 samples/s

=== Pools ===

$ rightpool pools
POOL   ACCELERATOR   NODES   CHIPS
dev    CPU           1       2

$ conditions
Placed True

4 of 4 stories happened, 290 s in all
""".format(long="word " * 40)


def _page(name: str, first: str = "") -> str:
    return f"Before.\n\n<!-- demo: {name} -->\n\n```text\n{first}old\nlines\n```\n\nAfter.\n"


def test_a_block_is_replaced_and_nothing_else() -> None:
    filled = tutorial.fill(_page("resnet50") + "```text\nold\n```\n", LOG)
    assert filled == (
        "Before.\n\n<!-- demo: resnet50 -->\n\n```text\n"
        "[  31s] resnet50: moves: 4 chips of a10g: 30% less than now …\n```\n\nAfter.\n```text\nold\n```\n"
    )
    assert tutorial.fill(filled, LOG) == filled


def test_a_story_is_the_wrapped_output_about_its_job() -> None:
    filled = tutorial.fill(_page("scaling"), LOG)
    assert "runs on 2 chips" in filled and "the move is kept" in filled and "Placed=True" not in filled
    assert "Degraded" not in filled and "resnet50" not in filled
    assert max(len(line) for line in filled.splitlines()) <= 118


def test_the_command_stays_above_its_output() -> None:
    filled = tutorial.fill(_page("pools", "$ rightpool pools\n"), LOG)
    assert "$ rightpool pools\nPOOL   ACCELERATOR" in filled
    assert filled.count("dev    CPU           1       2\n```\n") == 1


def test_only_a_whole_run_will_do() -> None:
    with pytest.raises(tutorial.Incomplete):
        tutorial.fill(_page("scaling"), LOG.replace("4 of 4", "3 of 4"))
    with pytest.raises(tutorial.Incomplete):
        tutorial.fill(_page("pools"), LOG.replace("rightpool pools", "another"))


def test_every_mark_of_the_page_is_known_and_filled() -> None:
    page = tutorial.PAGE.read_text(encoding="utf-8")
    marks = re.findall(r"<!-- demo: ([\w-]+) -->", page)
    assert sorted(marks) == sorted(tutorial.BLOCKS)
    assert not re.search(r"^<!-- demo: .*\n\n```\w+\n(?:\$ .*\n)?```$", page, flags=re.M)
