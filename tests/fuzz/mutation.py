"""Almost valid inputs: documents with a few unusual values, and data with a few changed bytes.

Random bytes fail the first check. These inputs start from valid ones with one to three changes, so that later checks
are reached too. All come from one generator: a seed and a number identify an input.
"""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import Any, Final

# Values at which types, ranges and encodings break.
ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, -1, 0, 1, 2, 17, 255, 2**31, 2**53 + 1, 2**63, 10**15, 10**15 + 1, 10**20, -(10**20)),
    *(0.0, -0.0, 0.5, 1.0, 1.0000001, 1.5, 100.0, 1e-320, 1e15, 1.0000001e15, 1e16, 1e300, -1e-9),
    *(float("nan"), float("inf"), float("-inf")),
    *("", "x", "0", "1", "nan", "cpu", "jax", "torch", "é", "\ud800", "\x00", '"', "\\", "\n", "a" * 81, "9" * 5000),
    *([], {}, [[]], [0], {"": 0}, [None] * 40, [0] * 17, {"id": "d-1", "state": "saved"}),
)
_INTERESTING: Final = (
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\x00",
    b"\xff",
    b"\n",
    b"\r\n",
    b" ",
    b"=",
    b"NaN",
)


def odd(random: Random) -> Any:
    """An unusual value, which the caller may modify."""
    return deepcopy(random.choice(ODD))


def broken(document: Any, random: Random, places: int) -> Any:
    """Change a number of places of the document, in place. The result may be another object."""
    for _ in range(places):
        holder, key = _place(document, random)
        if holder is None:
            return odd(random)
        _change(holder, key, random)
    return document


def _place(document: Any, random: Random) -> tuple[Any, Any]:
    """A container within the document and one of its keys; None if there is none."""
    if not document or not isinstance(document, dict | list):
        return None, None
    while True:
        key = random.randrange(len(document)) if isinstance(document, list) else random.choice(list(document))
        inner = document[key]
        if not inner or not isinstance(inner, dict | list) or random.random() < 0.3:
            return document, key
        document = inner


def _change(holder: Any, key: Any, random: Random) -> None:
    choice = random.random()
    value = holder[key]
    if choice < 0.55:
        holder[key] = odd(random)
    elif choice < 0.65 and isinstance(value, int | float) and not isinstance(value, bool):
        holder[key] = random.choice((-value, value + 1, value - 1, value * 2, value / 3, str(value), [value]))
    elif choice < 0.8:
        del holder[key]
    elif isinstance(holder, list):
        holder.insert(key, deepcopy(value))
    else:
        holder[random.choice(("", "x", f"{key}2", str(key).upper()))] = deepcopy(value)


def encoded(document: Any) -> bytes:
    """As JSON, including values that JSON does not allow; half a surrogate pair becomes invalid UTF-8."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def damaged(data: bytes, random: Random, places: int) -> bytes:
    """The bytes with a number of places changed."""
    for _ in range(places):
        at = random.randrange(len(data) + 1)
        choice = random.randrange(6)
        if choice == 0:
            data = data[:at] + bytes((random.randrange(256),)) + data[at + 1 :]
        elif choice == 1:
            data = data[:at] + random.choice(_INTERESTING) + data[at:]
        elif choice == 2:
            data = data[:at]
        elif choice == 3:
            data = data[:at] + data[at + random.randrange(1, 9) :]
        elif choice == 4:
            data = data[:at] + data[at : at + 16] * random.randrange(2, 5) + data[at:]
        else:
            other = random.randrange(len(data) + 1)
            data = data[:at] + data[other:]
        if len(data) > 100_000:
            data = data[:100_000]
    return data
