"""altered: the same as dataclasses.replace, of all that it is used for."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from rightpool.api.account import Account
from rightpool.api.altered import altered
from rightpool.api.progress import JobProgress
from rightpool.api.state import JobState
from rightpool.api.value_object import value_object
from tests.unit.planning.jobs import fresh


@pytest.mark.parametrize("one", [JobState(), Account(spent=3.0, chips=4), JobProgress(done=7), fresh()])
def test_it_gives_what_replace_gives_for_each_field(one: Any) -> None:
    assert altered(one) == one and altered(one) is not one
    for field in fields(one):
        new = object()
        made, expected = altered(one, **{field.name: new}), replace(one, **{field.name: new})
        for each in fields(one):
            assert getattr(made, each.name) is getattr(expected, each.name)


def test_what_is_copied_stays_as_it_was() -> None:
    one = Account(spent=1.0)
    assert altered(one, spent=2.0).spent == 2.0 and one.spent == 1.0


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError, match="Account has no field chip"):
        altered(Account(), chip=1)
    with pytest.raises(TypeError, match="Account has no field empty"):
        altered(Account(), empty=True)


def test_what_checks_itself_when_it_is_made_is_refused() -> None:
    @value_object
    class Checked:
        one: int = 1

        def __post_init__(self) -> None:
            pass

    with pytest.raises(TypeError, match="__post_init__"):
        altered(Checked(), one=2)
