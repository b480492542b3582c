"""The corpus: what the agent sees of JAX programs as people write them. `python -m tests.corpus` runs all of it."""

import pytest

from tests.corpus.__main__ import judge
from tests.corpus.recipe import read
from tests.corpus.run import run


@pytest.mark.jax
def test_jax_programs() -> None:
    found = run((one for one in read() if one.modules == "jax"), compared=False)
    assert judge(found)
    assert [one.recipe.name for one in found if not one.steps_ok] == []


def test_the_corpus_is_large_and_says_what_each_program_is_like() -> None:
    recipes = read()
    assert len(recipes) >= 40
    assert all(one.like for one in recipes) and len({one.name for one in recipes}) == len(recipes)
