"""What there is to run, and what may run beside what.

Parts of one lane share something: the common cluster, or the wish not to be more at once than two cores can carry.
Those that start clusters of their own are spread over the lanes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

Command = tuple[str, ...]

LIMIT_SECONDS: Final = 1500.0
BUILD: Final = "build"


@dataclass(frozen=True)
class Part:
    """commands: all of them run, also after one failed. after: a part that has to have passed first.

    cleanup: run where the part fails or is ended. seconds: for all of it, after which it is taken for hanging. root:
    whether it makes a cluster of its own with real pods.
    """

    name: str
    commands: tuple[Command, ...]
    after: str | None = None
    cleanup: tuple[Command, ...] = ()
    seconds: float = LIMIT_SECONDS
    root: bool = False


@dataclass(frozen=True)
class Lane:
    """Parts one after the other. up, down: make and remove what they share, before the first and after the last."""

    parts: tuple[Part, ...]
    up: Command = ()
    down: Command = ()

    @property
    def rooted(self) -> tuple[Part, ...]:
        """What only root can run: a common cluster has real pods too."""
        return tuple(part for part in self.parts if part.root or self.up)


def _script(name: str, *arguments: str) -> Command:
    """A program of the virtual environment, which need not be active."""
    return (str(Path(sys.executable).parent / name), *arguments)


def _module(name: str, *arguments: str) -> Command:
    return (sys.executable, "-m", name, *arguments)


def _pytest(*arguments: str) -> Command:
    # Several at once would write one cache.
    return _module("pytest", "-q", "-p", "no:cacheprovider", "--durations=5", *arguments)


def _down(*clusters: str) -> tuple[Command, ...]:
    return tuple(_module("devcluster", "down", "--name", name) for name in clusters)


SOURCES: Final = ("operator", "profiler_sidecar", "hack", "charts", "tests", "benchmarks", "examples")
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
# Templates need helm and promtool; everything else under unit/ needs nothing.
UNIT: Final = Part("unit", (_pytest("tests/unit", "tests/fuzz", "--ignore=tests/unit/chart", "-n", "2"),))
TEMPLATES: Final = Part("templates", (_pytest("tests/unit/chart"),), after=BUILD)
PROFILER: Final = Part("profiler", (_pytest(f"{INTEGRATION}/profiler", "-n", "3", "--dist", "loadfile"),))
DEVCLUSTER: Final = Part("devcluster", (_pytest(f"{INTEGRATION}/devcluster"),), after=BUILD, cleanup=_down("crash"))
API: Final = Part(
    "api-telemetry-workloads",
    (_pytest(*(f"{INTEGRATION}/{name}" for name in ("api", "telemetry", "workloads"))),),
    after=BUILD,
)
RUNTIME: Final = Part("cli-runtime", (_pytest(*(f"{INTEGRATION}/{name}" for name in ("cli", "runtime"))),), after=BUILD)
STORIES: Final = Part("stories", (_pytest("tests/e2e"),), after=BUILD)
FAULTS: Final = Part("faults", (_pytest(f"{INTEGRATION}/faults"),), after=BUILD, cleanup=_down("faults"), root=True)
SECURITY: Final = Part("security", (_pytest(f"{INTEGRATION}/security"),), after=BUILD, cleanup=_down("sec"), root=True)
CHART: Final = Part("chart", (_pytest(f"{INTEGRATION}/chart"),), after=BUILD, cleanup=_down("chart"), root=True)
CHAOS: Final = Part(
    "chaos",
    (_module("chaos", "--faults", "200", "--jobs", "50", "--rate", "3", "--seed", "1", "--logs", "build/tests/chaos"),),
    after=BUILD,
    cleanup=_down("chaos"),
    root=True,
)

LANES: Final = (
    Lane((Part(BUILD, (_module("devcluster", "build"),), seconds=2 * LIMIT_SECONDS),)),
    # What needs no program comes first: it runs while they are built.
    Lane((LINT, UNIT, PROFILER, TEMPLATES, DEVCLUSTER)),
    Lane(
        (API, RUNTIME, STORIES),
        up=_module("devcluster", "up", "--name", "test"),
        down=_module("devcluster", "down", "--name", "test"),
    ),
    Lane((FAULTS,)),
    Lane((SECURITY, CHART, CHAOS)),
)
