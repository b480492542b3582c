"""The corpus: what the agent sees of programs as people write them. `python -m tests.corpus` runs all of it."""

import pytest

from tests.corpus.__main__ import judge
from tests.corpus.recipe import read
from tests.corpus.run import run

BY_PARTS = ("torch_ppo", "torch_ppo_shared", "torch_parts_loader")  # their model is never called itself


@pytest.mark.jax
def test_jax_programs() -> None:
    found = run(one for one in read() if one.modules == "jax")
    assert judge(found)
    assert [one.recipe.name for one in found if not one.steps_ok] == []


@pytest.mark.torch
def test_torch_programs() -> None:
    """Those marked quick: the others show the same hooks in other company."""
    found = run(one for one in read() if one.modules != "jax" and one.quick)
    assert judge(found)
    assert {one.recipe.name: one.samples for one in found if one.recipe.name in BY_PARTS} == {
        one.recipe.name: one.true_samples for one in found if one.recipe.name in BY_PARTS
    }


def test_the_corpus_is_large_and_says_what_each_program_is_like() -> None:
    recipes = read()
    assert len(recipes) >= 40
    assert all(one.like for one in recipes) and len({one.name for one in recipes}) == len(recipes)
