"""The parts of the test suite, in lanes that run side by side.

Parts of one lane run in sequence because they share a cluster, or because two cores can't run more at once. Parts with
separate clusters are distributed over the lanes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

Command = tuple[str, ...]

# Longer than any test or check takes on a machine that does much else; see tests/patience.py.
SILENT_SECONDS: Final = 3600.0
BUILD: Final = "build"


@dataclass(frozen=True)
class Part:
    """commands: all are run, also after a failure. after: a part that must have passed before.

    cleanup: run after a failure or interrupt. seconds: without output, after which a command is ended. root: whether it
    starts a cluster with real pods, which needs root.

    again: run after a failure, with only what failed. A test of real servers and programs that passes then is unsteady:
    it is told, and counts as passed, since what it waits for may have met a machine that did not run for a while.
    """

    name: str
    commands: tuple[Command, ...]
    after: str | None = None
    cleanup: tuple[Command, ...] = ()
    seconds: float = SILENT_SECONDS
    root: bool = False
    again: Command = ()


@dataclass(frozen=True)
class Lane:
    """Parts that run in sequence. up, down: start and remove their common cluster."""

    parts: tuple[Part, ...]
    up: Command = ()
    down: Command = ()

    @property
    def rooted(self) -> tuple[Part, ...]:
        """Parts that need root. A common cluster has real pods, too."""
        return tuple(part for part in self.parts if part.root or self.up)

    @property
    def clustered(self) -> bool:
        """Whether it starts clusters. A part that has some of its own removes them by its cleanup."""
        return bool(self.up) or any(part.cleanup for part in self.parts)


def _script(name: str, *arguments: str) -> Command:
    """A program of the virtual environment, whether active or not."""
    return (str(Path(sys.executable).parent / name), *arguments)


def _module(name: str, *arguments: str) -> Command:
    return (sys.executable, "-m", name, *arguments)


def _pytest(*arguments: str) -> Command:
    # Without the cache, which concurrent runs would overwrite.
    return _module("pytest", "-q", "-p", "no:cacheprovider", "--durations=5", *arguments)


def _servers(
    name: str, *arguments: str, after: str | None = BUILD, clusters: tuple[str, ...] = (), root: bool = False
) -> Part:
    """A part with real servers and programs, and a cache of its own that knows what failed. clusters: its own."""
    command = _module("pytest", "-q", "-o", f"cache_dir=build/tests/cache/{name}", "--durations=5", *arguments)
    cleanup = tuple(_module("devcluster", "down", "--name", cluster) for cluster in clusters)
    return Part(name, (command,), after, cleanup, root=root, again=(*command, "--last-failed"))


SOURCES: Final = ("operator", "profiler_sidecar", "hack", "tools", "charts", "tests", "benchmarks", "examples")
INTEGRATION: Final = "tests/integration"

LINT: Final = Part(
    "lint",
    (
        _script("ruff", "check", *SOURCES),
        _script("ruff", "format", "--check", *SOURCES),
        _script("mypy"),
        _script("lint-imports"),
        _module("rightpool.api.crd", "--check", "crds"),
    ),
)
# Templates need helm and promtool; all other unit tests need no program.
UNIT: Final = Part("unit", (_pytest("tests/unit", "tests/fuzz", "--ignore=tests/unit/chart", "-n", "2"),))
TEMPLATES: Final = Part("templates", (_pytest("tests/unit/chart"),), after=BUILD)
# In the order of files: pytest-xdist would begin with those that have the most tests, and end with the longest ones.
PROFILER: Final = _servers(
    "profiler",
    *(f"{INTEGRATION}/profiler", "-n", "3", "--dist", "loadfile", "--no-loadscope-reorder"),
    after=None,
)
DEVCLUSTER: Final = _servers("devcluster", f"{INTEGRATION}/devcluster", clusters=("crash",))
API: Final = _servers(
    "api-telemetry-workloads", *(f"{INTEGRATION}/{name}" for name in ("api", "telemetry", "workloads"))
)
RUNTIME: Final = _servers("cli-runtime", *(f"{INTEGRATION}/{name}" for name in ("cli", "runtime")))
STORIES: Final = _servers("stories", "tests/e2e", clusters=("stories",), root=True)
# Two processes, each with a cluster of its own: by itself this part would take longer than all others side by side.
FAULTS: Final = _servers(
    "faults",
    *(f"{INTEGRATION}/faults", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"),
    clusters=("faults", "faults2"),
    root=True,
)
SECURITY: Final = _servers("security", f"{INTEGRATION}/security", clusters=("sec",), root=True)
KINDS: Final = _servers("kinds", f"{INTEGRATION}/kinds", clusters=("kinds",), root=True)
CHART: Final = _servers("chart", f"{INTEGRATION}/chart", clusters=("chart",), root=True)
CHAOS: Final = Part(
    "chaos",
    (_module("tests.chaos", "--faults=200", "--jobs=50", "--rate=3", "--seed=1", "--logs=build/tests/chaos"),),
    after=BUILD,
    cleanup=(_module("devcluster", "down", "--name", "chaos"),),
    root=True,
)

LANES: Final = (
    Lane((Part(BUILD, (_module("devcluster", "build"), _module("devcluster", "build", "jobset"))),)),
    # What needs the processor alone, in one lane: two of them would slow down all tests that wait for a cluster. Parts
    # that need no built program come first, since they can run during the build.
    Lane((LINT, UNIT, PROFILER, TEMPLATES)),
    # The longest waits: a cluster of its own, so that they need not wait for anything else.
    Lane((STORIES, DEVCLUSTER)),
    Lane(
        (API, RUNTIME),
        up=_module("devcluster", "up", "--name", "test"),
        down=_module("devcluster", "down", "--name", "test"),
    ),
    Lane((FAULTS, CHAOS, KINDS)),
    # What mostly waits. At the end of a longer lane it would wait alone, when the others have left the cores idle.
    Lane((SECURITY, CHART)),
)
