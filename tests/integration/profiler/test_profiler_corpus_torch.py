"""The corpus' PyTorch programs. In a file of their own, so that they can run beside those of JAX."""

import pytest

from tests.corpus.__main__ import judge
from tests.corpus.recipe import read
from tests.corpus.run import run

BY_PARTS = ("torch_ppo", "torch_ppo_shared", "torch_parts_loader")  # their model is never called itself


@pytest.mark.torch
def test_torch_programs() -> None:
    """Those marked quick: the others show the same hooks in other company."""
    found = run(one for one in read() if one.modules != "jax" and one.quick)
    assert judge(found)
    assert {one.recipe.name: one.samples for one in found if one.recipe.name in BY_PARTS} == {
        one.recipe.name: one.true_samples for one in found if one.recipe.name in BY_PARTS
    }
