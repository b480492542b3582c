"""What was measured in runs whose bottleneck is known, as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from rightpool.profiles.profile import Profile

_DIGITS: Final = 4


@dataclass(frozen=True)
class Labelled:
    """A run. labels: the classes that are true of it. chip: its key in the catalog."""

    name: str
    labels: tuple[str, ...]
    chip: str
    profile: Profile


_ADAPTER: Final = TypeAdapter(Labelled)


def add(file: Path, name: str, labels: Sequence[str], chip: str, profile: Profile) -> None:
    """Append a run, its numbers with four digits."""
    line = json.dumps(
        _rounded(_ADAPTER.dump_python(Labelled(name, tuple(labels), chip, profile), mode="json")), separators=(",", ":")
    )
    with file.open("a") as lines:
        lines.write(line + "\n")


def read(file: Path) -> Iterator[Labelled]:
    """All runs of a file."""
    return map(_ADAPTER.validate_json, file.read_text().splitlines())


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
