"""Runs recipes bare and with the agent, and compares what the sidecar would export with what the programs counted."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rightpool import contract
from rightpool_profiler import install
from rightpool_profiler.report import Malformed, parse
from rightpool_profiler.state import State
from tests.corpus.recipe import Recipe
from tests.xla_flags import ANY_VERSION, QUICKLY_COMPILED

_HOST: Final = str(Path(__file__).with_name("host.py"))
_SECONDS: Final = 3600.0
# Small functions that are not compiled by the programs are the same in many of them.
_COMPILE_ONCE: Final = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
_HURRY: Final = {"PERIOD = 1.0": "PERIOD = 0.2", "_LAST_WORD = 10.0": "_LAST_WORD = 60.0"}


@dataclass(frozen=True)
class Outcome:
    """One program. None for a count: it is absent."""

    recipe: Recipe
    steps: float | None
    samples: float | None
    true_steps: float | None
    true_samples: float | None
    parameters: float | None
    true_parameters: float | None  # None: not said
    harm: str  # empty: none

    @property
    def parameters_ok(self) -> bool:
        return None in (self.parameters, self.true_parameters) or self.parameters == self.true_parameters

    @property
    def steps_ok(self) -> bool:
        return self.steps == self.true_steps

    @property
    def samples_ok(self) -> bool:
        return self.samples is None or self.samples == self.true_samples


def run(recipes: Iterable[Recipe], python: str = sys.executable, *, compared: bool = True) -> list[Outcome]:
    """Run them with the agent and bare, grouped by what they import. compared: else bare only those marked quick, and
    of the others harm is what ends them."""
    groups: dict[str, list[Recipe]] = defaultdict(list)
    for recipe in recipes:
        groups[recipe.modules].append(recipe)
    found = []
    for modules, group in groups.items():
        with tempfile.TemporaryDirectory(prefix="rightpool-corpus-", dir="/tmp") as folder:
            found += _run_group(modules, group, Path(folder), python, compared)
    return found


def _run_group(modules: str, group: list[Recipe], folder: Path, python: str, compared: bool) -> list[Outcome]:
    agent, bare, seen = folder / "agent", folder / "b", folder / "s"
    _install(folder)
    names = [recipe.name for recipe in group]
    bare_too = [recipe.name for recipe in group if compared or recipe.quick]
    for name in bare_too:
        (bare / name).mkdir(parents=True)
    for name in names:
        (seen / name / "commands").mkdir(parents=True)
    listener = _Listener([seen / name for name in names])
    # The agent's run is first: what it sees compiled is not compiled before. Bare, the same is compiled no more.
    common = (
        {"JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"), **_COMPILE_ONCE} if python == sys.executable else {}
    )
    with_agent = {"PYTHONPATH": str(agent), contract.ENV_SHARED_DIR: str(folder), contract.ENV_TRACE: "Auto"}
    try:
        _host(python, seen, modules, names, {**common, **with_agent})
        if bare_too:
            _host(python, bare, modules, bare_too, common)
    finally:
        states = listener.stop()
    return [
        _judge(one, bare / one.name, seen / one.name, states[one.name], listener.parameters.get(one.name))
        for one in group
    ]


def _install(folder: Path) -> None:
    install.install(folder)
    reporter = folder / "agent" / "rightpool_agent" / "reporter.py"
    text = reporter.read_text()
    for before, after in _HURRY.items():
        text = text.replace(before, after)
    reporter.write_text(text)


def _host(python: str, folder: Path, modules: str, names: list[str], more: dict[str, str]) -> None:
    dropped = ("PYTHON", "RIGHTPOOL", "JAX_", "XLA_", "PYTEST", "KERAS")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    environment = {
        **kept,
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": QUICKLY_COMPILED if python == sys.executable else ANY_VERSION,
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **more,
    }
    done = subprocess.run(
        [python, "-W", "ignore", _HOST, str(folder), modules, *names],
        env=environment,
        cwd="/",
        timeout=_SECONDS,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{modules}: {done.stderr}")


class _Listener:
    """Receives the reports of each program, as the sidecar would."""

    def __init__(self, folders: list[Path]) -> None:
        self._states = {folder.name: State(3600, 1) for folder in folders}
        self.parameters: dict[str, float | None] = {}  # by the newest report: what is said of a model ends with it
        self._sockets = {}
        for folder in folders:
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            listening.bind(str(folder / Path(contract.AGENT_SOCKET).name))
            listening.settimeout(0.0)
            self._sockets[folder.name] = listening
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        ended = False
        while not ended:
            ended = self._end.wait(0.02)
            for name, listening in self._sockets.items():
                while True:
                    try:
                        body = listening.recv(1 << 16)
                    except OSError:
                        break
                    try:
                        report = parse(body)
                        self._states[name].apply(report, time.monotonic(), time.time())
                        self.parameters[name] = report.model and report.model.parameters
                    except Malformed as error:
                        print(f"{name}: {error}", file=sys.stderr)

    def stop(self) -> dict[str, State]:
        self._end.set()
        self._thread.join()
        for listening in self._sockets.values():
            listening.close()
        return self._states


def _read(path: Path) -> str:
    """Output without the moments and process ids that a log has, and without what Triton says at the end of what is
    frozen: some of its functions, in any order."""
    text = re.sub(r"\b[IWE]\d{4} [0-9:.]+ \d+ ", "", path.read_text())
    return re.sub(r"nanobind: leaked .*?refleaks\.html\n?", "", text, flags=re.DOTALL)


def _judge(recipe: Recipe, bare: Path, seen: Path, state: State, parameters: float | None) -> Outcome:
    alone = bare if bare.exists() else seen
    harm = [f"{what} differs" for what in ("status", "out", "err") if _read(alone / what) != _read(seen / what)]
    if (alone / "status").read_text() != "0":
        harm.append("fails by itself: " + (alone / "err").read_text()[-300:])
    truth = json.loads((seen / "truth").read_text()) if (seen / "truth").exists() else {}
    now = time.monotonic()
    samples, _ = state.exposition(now)
    exported = {sample.metric: sample.value for sample in samples if not sample.labels}
    shutil.rmtree(seen)
    return Outcome(
        recipe,
        exported.get(contract.STEPS),
        exported.get(contract.SAMPLES),
        truth.get("steps"),
        truth.get("samples"),
        parameters,
        truth.get("parameters"),
        "; ".join(harm),
    )
