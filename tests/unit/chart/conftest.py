"""helm for these tests, built if needed."""

from __future__ import annotations

import pytest

from devcluster import build
from devcluster.progress import Progress

from .rendering import Helm


@pytest.fixture(scope="session")
def helm() -> Helm:
    component = next(one for one in build.CONTROL_PLANE if one.name == "helm")
    return Helm(str(build.ensure([component], Progress()) / "helm"))
