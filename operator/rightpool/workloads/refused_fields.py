"""The fields that the API server refuses, as the user knows them: in some lists the operator puts its own first."""

import re
from collections.abc import Mapping
from typing import Any, Final

_PATH: Final = re.compile(r"\bspec(?:\.[A-Za-z]+|\[\d+\])+")
# What stands before an unknown field, and says no more than that the API server does not know it.
_PREAMBLE: Final = re.compile(r'^\w+ in version "\w+" cannot be handled as a \w+: strict decoding error: ')
_WEBHOOK: Final = re.compile(r'admission webhook "([^"]+)" denied the request: ')
# Its user knows the value, and what is wrong with it comes after that.
_OBJECT: Final = re.compile(r"Invalid value: \{.*?\}: ")
_PART: Final = re.compile(r"[A-Za-z]+|\[\d+\]")
_SHIFTED: Final = frozenset({"initContainers", "env"})


def by_name(message: str, child: Mapping[str, Any]) -> str:
    """The API server's words about a child, as few as say it, with names in place of the indexes that only the child
    has: `env[LR]`."""
    words = _OBJECT.sub("", _WEBHOOK.sub(r"webhook \1: ", _PREAMBLE.sub("", message)))
    return _PATH.sub(lambda path: _by_name(path[0], child), words)


def _by_name(path: str, child: Mapping[str, Any]) -> str:
    at: Any = child
    shown, field = "", ""
    for part in _PART.findall(path):
        if part.startswith("["):
            index = int(part[1:-1])
            at = at[index] if isinstance(at, list) and index < len(at) else None
            name = at.get("name") if isinstance(at, Mapping) else None
            shown += f"[{name}]" if field in _SHIFTED and isinstance(name, str) and name else part
        else:
            at = at.get(part) if isinstance(at, Mapping) else None
            shown, field = f"{shown}.{part}" if shown else part, part
    return shown
