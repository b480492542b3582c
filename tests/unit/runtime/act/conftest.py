"""The world of each test."""

from __future__ import annotations

import pytest

from tests.unit.runtime.act.world import World


@pytest.fixture
def world() -> World:
    return World()
