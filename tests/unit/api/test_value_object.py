"""Values: equal, hashed, copied and pickled as frozen dataclasses are."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from dataclasses import dataclass, field

from rightpool.api.account import Account
from rightpool.api.value_object import value_object
from tests.patience import PATIENCE


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


@value_object
class Seen:
    name: str
    at: float = field(default=0.0, compare=False)
    rows: tuple[int, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class SeenFrozen:
    name: str
    at: float = field(default=0.0, compare=False)
    rows: tuple[int, ...] = field(default=(), repr=False)


@value_object
class Nothing:
    pass


@value_object
class Longer(Seen):
    more: int = 0


@value_object
class Spoken:
    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __hash__(self) -> int:
        return 7


def test_what_is_left_out_of_a_comparison_or_of_the_text_is_left_out_as_a_dataclass_does() -> None:
    made, other = Seen("a", 1.0, (2,)), Seen("a", 3.0, (2,))
    assert made == other and hash(made) == hash(other) and made != Seen("a", 1.0, (3,))
    assert repr(made) == repr(SeenFrozen("a", 1.0, (2,))).replace("SeenFrozen", "Seen")
    assert Nothing() == Nothing() and hash(Nothing()) == hash(Nothing()) and repr(Nothing()) == "Nothing()"


def test_a_kind_is_no_other_kind_and_has_the_fields_of_what_it_extends() -> None:
    assert Longer("a") != Seen("a") and Longer("a", more=1) != Longer("a", more=2)
    assert repr(Longer("a", 1.0, more=2)) == "Longer(name='a', at=1.0, more=2)"


def test_what_a_kind_says_of_itself_stays() -> None:
    assert repr(Spoken("x")) == "<x>" and hash(Spoken("x")) == 7 and Spoken("x") == Spoken("x")


COUNT = """
import sys
from dataclasses import dataclass
from rightpool.api.value_object import value_object
counts = []
for make in (value_object, dataclass(frozen=True, slots=True)):
    class Kind:
        "A value."
        first: int
        second: float = 0.0
    compiled = []
    sys.addaudithook(lambda event, _, seen=compiled: seen.append(event) if event == "compile" else None)
    make(Kind)
    counts.append(len(compiled))
print(*counts)
"""


def test_making_a_kind_compiles_its_constructor_and_its_comparison_alone() -> None:
    """A command makes hundreds before it does anything."""
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, timeout=PATIENCE, check=True)
    ours, frozen = map(int, done.stdout.split())
    assert ours == 2 < frozen
