"""The operator's image has the same environment by its Dockerfile and by its recipe."""

from __future__ import annotations

import re

from devcluster import recipes


def test_the_environment_is_that_of_the_dockerfile() -> None:
    lines = (recipes.ROOT / "operator" / "Dockerfile").read_text().splitlines()
    written = " ".join(line.removeprefix("ENV ") for line in lines if line.startswith("ENV "))
    [image] = [recipe.config for recipe in recipes.RECIPES if recipe.name.startswith("rightpool/operator:")]
    assert dict(re.findall(r"(\w+)=(\S+)", written)) == {k: v for k, v in image.environment.items() if k != "PATH"}
