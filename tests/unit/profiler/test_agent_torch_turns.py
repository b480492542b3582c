"""Which steps of several optimizers are one training step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rightpool_agent.torch_turns import Turns  # type: ignore[import-not-found]


def counted(order: str) -> int:
    """Steps that are counted where optimizers come in this order, a letter each; a capital one learns again from the
    batch of its last step."""
    turns = Turns()
    return sum(turns.take(ord(letter.lower()), letter.isupper()) for letter in order)


@pytest.mark.parametrize(
    ("order", "steps"),
    [
        ("dg" * 50, 50),  # a GAN
        ("dddddg" * 20, 100),  # a critic's steps before each of the generator
        ("gddddd" * 20, 100),
        ("dddddddg" * 3 + "dg" * 20, 41),  # more of them at first
        ("qqa" * 50, 100),  # TD3: the actor every second time
        ("qqtutu" * 49, 98),  # SAC of CleanRL: actor and temperature every second time, and then twice
        ("abc" * 40, 40),  # one for each layer
        ("aaabbb" * 2, 12),  # one for each layer, which is trained alone (forward-forward)
        ("a" * 80 + "b" * 80 + "a" * 80, 240),  # PPO of Spinning Up: the policy, then its value function
        ("a" * 5 + "ab" * 30, 35),  # a second one that begins later
        ("a" * 10 + "bc" * 20, 30),  # two that follow one
        ("dg" * 30 + "g" * 30, 60),  # one of two goes on alone
        ("qqa" * 30 + "a" * 30, 90),  # the one that comes every second time
        ("tec" * 9 + "g" * 9 + "tegc" * 9, 27),  # a metric, then a generator alone, then both
        ("de" * 9 + "gh" * 9, 18),  # two of two networks, then two of two others
        ("qqqtuTUTU" * 20, 60),  # SAC of CleanRL with policy_frequency=3
        ("q" + "qqqqqtuTUTUTUTU" * 20 + "qq", 103),  # and 5
        ("pqpqpqtuTUTU" * 20, 60),  # and with an optimizer for each critic
        ("a" + "A" * 79 + "b" + "B" * 79 + "a" + "A" * 79, 240),  # PPO of Spinning Up, with one batch for all of them
    ],
)
def test_optimizers_that_take_turns_make_one_step_together(order: str, steps: int) -> None:
    assert counted(order) == steps


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(3, 30)), min_size=1, max_size=8))
def test_blocks_of_one_optimizer_after_the_other_count_each(blocks: list[tuple[str, int]]) -> None:
    assert counted("".join(letter * count for letter, count in blocks)) == sum(count for _, count in blocks)


@given(st.lists(st.sampled_from("abc"), max_size=60))
def test_there_are_never_more_steps_than_optimizers_have_made(order: list[str]) -> None:
    assert 0 < counted("".join(["a", *order])) <= 1 + len(order)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(2, 6))
def test_one_that_catches_up_on_the_same_batch_is_part_of_the_other_ones_step(
    alone: int, block: int, more: int
) -> None:
    order = ("q" * alone + "t" + "T" * (block - 1)) * (more + block // alone)
    assert counted(order) == order.count("q")


def test_an_optimizer_that_follows_one_that_is_no_more_begins_at_once() -> None:
    turns = Turns()
    assert sum(turns.take(1) for _ in range(3)) == 3
    turns.leave(1)
    assert [turns.take(2) for _ in range(2)] == [1, 1]


@pytest.mark.parametrize(("order", "steps"), [("gddddd" * 5, 25), ("dg" * 10, 10), ("tec" * 4 + "g" * 9, 13)])
def test_each_of_several_trainings_counts_as_the_first(order: str, steps: int) -> None:
    """A sweep: the optimizers of one training are no more when the next one begins."""
    turns, found = Turns(), []
    for trial in range(3):
        keys = [1000 * trial + ord(letter) for letter in order]
        found.append(sum(map(turns.take, keys)))
        for key in dict.fromkeys(keys):
            turns.leave(key)
    assert found == [steps] * 3
