"""altered: the same as dataclasses.replace, of all that it is used for."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, fields, replace
from typing import Any

import pytest

from rightpool.api.account import Account
from rightpool.api.altered import altered
from rightpool.api.progress import JobProgress
from rightpool.api.state import JobState
from tests.unit.planning.jobs import fresh


@pytest.mark.parametrize("one", [JobState(), Account(spent=3.0, chips=4), JobProgress(done=7), fresh()])
def test_it_gives_what_replace_gives_for_each_field(one: Any) -> None:
    assert altered(one) == one and altered(one) is not one
    for field in fields(one):
        value = object()
        made, expected = altered(one, **{field.name: value}), replace(one, **{field.name: value})
        for each in fields(one):
            assert getattr(made, each.name) is getattr(expected, each.name)


def test_a_copy_is_as_frozen_and_an_unknown_field_is_refused() -> None:
    made = altered(Account(), spent=1.0)
    with pytest.raises(FrozenInstanceError):
        made.spent = 2.0  # type: ignore[misc]
    with pytest.raises(TypeError, match="Account has no field chip"):
        altered(made, chip=1)


def test_what_checks_itself_when_it_is_made_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Checked:
        one: int = 1

        def __post_init__(self) -> None:
            pass

    with pytest.raises(TypeError, match="__post_init__"):
        altered(Checked(), one=2)
