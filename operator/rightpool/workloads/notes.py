"""Properties of a user's template that prevent profiling, fully or in part."""

import re
import shlex
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from rightpool import contract
from rightpool.api.conditions import Reason
from rightpool.workloads.template import chip_container_of, normalised, objects_in, pod_spec

PYTHONPATH: Final = "PYTHONPATH"
PYTHONUSERBASE: Final = "PYTHONUSERBASE"
PYTHONNOUSERSITE: Final = "PYTHONNOUSERSITE"

_PYTHON: Final = re.compile(r"(?:.*/)?python[0-9.]*")
# Options of Python that take the next word as their value, and those that end its options.
_WITH_VALUE: Final = frozenset("WX")
_LAST: Final = frozenset("cm")


class InjectionNote(StrEnum):
    """Why a pod is not or only partly measured. The value is a reason that users see."""

    # The sidecar's port would be the node's, so that readings of other pods could be taken for this pod's.
    HOST_NETWORK = Reason.HOST_NETWORK.value
    USER_BASE_TAKEN = Reason.USER_BASE_TAKEN.value
    USER_SITE_OFF = Reason.USER_SITE_OFF.value
    PYTHON_ISOLATED = Reason.PYTHON_ISOLATED.value


NOTE_MESSAGES: Final[Mapping[InjectionNote, str]] = {
    InjectionNote.HOST_NETWORK: (
        "the profiler is left out, since the pod uses the node's network: remove hostNetwork to have it measured"
    ),
    InjectionNote.USER_BASE_TAKEN: (
        "steps are not measured, since the template sets PYTHONUSERBASE: set PYTHONPATH in it too, empty if need be"
    ),
    InjectionNote.USER_SITE_OFF: (
        "steps are not measured, since Python runs without user site packages (PYTHONNOUSERSITE or -s): set PYTHONPATH "
        "in the template, empty if need be"
    ),
    InjectionNote.PYTHON_ISOLATED: (
        "steps are not measured, since Python runs with -I, -E or -S: remove that option, or use -s with PYTHONPATH in "
        "the template"
    ),
}


def notes_for(template: Mapping[str, Any], chip_container: str | None) -> tuple[InjectionNote, ...]:
    """Why the profiler, or a part of it, can't be injected into these pods."""
    pod = normalised(template)
    notes = []
    if pod_spec(pod).get("hostNetwork") is True:
        notes.append(InjectionNote.HOST_NETWORK)
    container = chip_container_of(pod, chip_container)
    options = set(_options(container))
    if options & set("IES"):
        notes.append(InjectionNote.PYTHON_ISOLATED)
    elif not has_literal_path(container):
        base, without = variable_of(container, PYTHONUSERBASE), variable_of(container, PYTHONNOUSERSITE)
        if base is not None and base.get("value") != contract.USER_BASE_DIR:
            notes.append(InjectionNote.USER_BASE_TAKEN)
        if "s" in options or (without is not None and without.get("value")):
            notes.append(InjectionNote.USER_SITE_OFF)
    return tuple(notes)


def variable_of(container: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The variable that the container gets: the last one with this name."""
    env = objects_in(container, "env", f"container {container['name']}") if "env" in container else []
    return next((variable for variable in reversed(env) if variable["name"] == name), None)


def has_literal_path(container: dict[str, Any]) -> bool:
    """Whether the template sets PYTHONPATH to a literal value."""
    variable = variable_of(container, PYTHONPATH)
    return variable is not None and "valueFrom" not in variable


def _options(container: Mapping[str, Any]) -> Iterator[str]:
    """The one-letter options of each Python interpreter in the container's command, also in a shell's command."""
    words = iter(_words(container))
    for word in words:
        if not _PYTHON.fullmatch(word):
            continue
        for option in words:
            if not option.startswith("-") or option in ("-", "--"):
                break
            if option.startswith("--"):
                continue
            for place, letter in enumerate(option[1:], 2):
                yield letter
                if letter in _WITH_VALUE:
                    if place == len(option):
                        next(words, None)
                    break
                if letter in _LAST:
                    break
            if _LAST & set(option):
                break


def _words(container: Mapping[str, Any]) -> Iterator[str]:
    for part in (container.get("command"), container.get("args")):
        for word in part if isinstance(part, list) else ():
            if not isinstance(word, str):
                continue
            try:
                yield from shlex.split(word) if any(map(str.isspace, word)) else [word]
            except ValueError:
                yield word  # an unclosed quote; the shell will report it
