"""A sidecar that is asked for traces, and agents that say what they are told to."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from rightpool_profiler.report import parse
from rightpool_profiler.state import State
from rightpool_profiler.traces import kept as volume
from rightpool_profiler.traces import requested
from rightpool_profiler.traces.kept import Kept
from rightpool_profiler.traces.requested import Requested

from .test_summary import event, text

TRACE = text([event("cpu_op", "aten::mm", 0, 10), event("Trace", "PyTorch Profiler (0)", 0, 20)])


class Site:
    """A sidecar, and an agent that says what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.shared, self.kept = folder / "shared", folder / "kept"
        for path in (self.kept, self.shared / "commands", self.shared / "traces"):
            path.mkdir(parents=True)
        self.state = State(10.0, 1)
        self.requested = Requested(self.shared, self.kept, 0.0)
        self.now = requested.START_SECONDS + 100.0

    def ask(self, identity: str = "one", rank: int | None = 0) -> dict[str, Any]:
        return self.requested.ask(identity, rank, self.state, self.now, 1.8e9).to_dict()

    def report(
        self,
        word: str = "",
        identity: str = "one",
        rank: int = 0,
        world: int = 1,
        steps: int = 0,
        pid: int = 0,
        cost: float | None = None,
    ) -> None:
        counters = {"steps": steps, "seconds": 0.0, "counts": [0] * 17, "cpu": 0.0, "framework": "torch"}
        message = {"pid": pid or 40 + rank, "start": 1, "rank": rank, "world": world, "at": self.now, **counters}
        if word:
            message["trace"] = {"id": identity, "state": word}
        if cost is not None:
            message["trace_cost"] = cost
        self.state.apply(parse(json.dumps(message).encode()), self.now, 1.8e9)

    def look(self, seconds: float = 1.0) -> None:
        self.now += seconds
        found = self.requested.look(self.state, self.now, 1.8e9 + self.now)
        if found is not None:
            self.requested.settle(found, self.requested.read(found))

    def write(self, rank: int = 0, content: bytes = TRACE) -> None:
        (self.shared / "traces" / f"{40 + rank}.requested.json").write_bytes(content)

    def turn(self) -> int | None:
        """The rank that the agents are asked for."""
        command = self.shared / "commands" / "trace.json"
        return int(json.loads(command.read_text())["rank"]) if command.exists() else None

    def serve(self, rank: int, word: str = "written", **about: Any) -> None:
        """This rank's agent has its turn, and says so."""
        if word == "written":
            self.write(rank)
        self.report(word, "all:all", rank, **about)
        self.look()
        self.look()

    def files(self) -> list[str]:
        return sorted(path.name for path in self.kept.iterdir() if path.name != volume.ANSWER)

    def send(self, identity: str, *, of_xla: bool = False) -> tuple[int, bytes]:
        out = io.BytesIO()
        return Kept(self.kept).send(identity, out, of_xla=of_xla), out.getvalue()
