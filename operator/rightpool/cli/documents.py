"""Documents for programs: JSON or YAML, with keys in the documented order and null for what is not known.

Whatever the API writes as a decimal string is a number here, so that a script never meets both.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rightpool.api.units import write_unix_time
from rightpool.contract import GROUP, VERSION

if TYPE_CHECKING:
    from rightpool.api.placement import Placement

FORMATS: Final = ("table", "json", "yaml")
_DECIMAL: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
# Texts that may look like numbers.
_WORDS: Final = frozenset(
    {"name", "namespace", "pool", "id", "workloadHash", "message", "reason", "selector", "device"}
)


def print_document(document: Any, form: str) -> None:
    """Print it as `json` or `yaml`."""
    stream = sys.stdout
    if form == "yaml":
        import yaml

        yaml.safe_dump(document, stream, sort_keys=False, allow_unicode=True)
        return
    json.dump(document, stream, indent=2, ensure_ascii=False, allow_nan=False)
    stream.write("\n")


def document_head(kind: str, now: float | None = None) -> dict[str, Any]:
    """What every document begins with. now: Unix seconds that it is as of; None where it depends on no time."""
    head = {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind}
    return head if now is None else {**head, "asOf": write_unix_time(now)}


def plain(wire: Any, key: str = "") -> Any:
    """A part of a status with its decimal strings as numbers."""
    if isinstance(wire, Mapping):
        return {name: plain(value, str(name)) for name, value in wire.items()}
    if isinstance(wire, list | tuple):
        return [plain(value, key) for value in wire]
    if isinstance(wire, str) and key not in _WORDS and _DECIMAL.fullmatch(wire):
        return float(wire)
    return wire


def place_document(placement: Placement) -> dict[str, Any]:
    """Where and how big."""
    return {
        "pool": placement.pool,
        "chips": placement.chips,
        "replicas": placement.replicas,
        "capacity": placement.capacity.value,
    }
