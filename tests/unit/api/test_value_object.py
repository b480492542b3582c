"""Values: equal, hashed, copied and pickled as frozen dataclasses are."""

from __future__ import annotations

import copy
import pickle

from rightpool.api.account import Account
from rightpool.api.value_object import value_object


@value_object
class Pair:
    one: int
    two: tuple[int, ...] = ()


def test_it_is_what_it_holds() -> None:
    assert Pair(1) == Pair(1, ()) and Pair(1) != Pair(2)
    assert hash(Pair(1, (2,))) == hash(Pair(1, (2,))) and len({Pair(1), Pair(1), Pair(2)}) == 2
    assert not hasattr(Pair(1), "__dict__")


def test_it_can_be_copied_and_pickled() -> None:
    account = Account(spent=3.0)
    assert copy.copy(account) == copy.deepcopy(account) == pickle.loads(pickle.dumps(account)) == account
