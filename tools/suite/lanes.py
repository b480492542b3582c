"""Runs lanes side by side, and the parts of each in sequence. A failed part does not stop the others."""

from __future__ import annotations

import math
import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tools.suite import children
from tools.suite.children import End, Ended
from tools.suite.parts import Command, Lane, Part
from tools.suite.results import Result, counts, failed, run_again

CLUSTER_SECONDS = 1200.0  # without output of `up` and `down`
HEARTBEAT_SECONDS = 60.0
# What failed is run again for so long, and no more when so much time has passed: CI ends a run that takes too long, and
# nothing is known of it then.
AGAIN_SECONDS = 900.0
LATEST_AGAIN_SECONDS = 3000.0
COMMON = "common"  # the log of `up` and `down` of a lane
CLEANUP = "cleanup"


class Suite:
    """One run. folder: for the logs."""

    def __init__(self, lanes: Sequence[Lane], folder: Path, say: Callable[[str], None] = print) -> None:
        self._lanes = lanes
        self._folder = folder
        self._say = say
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._ended = {part.name: threading.Event() for lane in lanes for part in lane.parts}
        self._running: dict[str, None] = {}
        self.results: list[Result] = []

    def log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def run(self) -> list[Result]:
        """Run all lanes to the end."""
        self._folder.mkdir(parents=True, exist_ok=True)
        threads = [threading.Thread(target=self._run_lane, args=(lane,)) for lane in self._lanes]
        for thread in threads:
            thread.start()
        reported = time.monotonic()
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.1)  # a wait without timeout would block signal handlers
            if time.monotonic() - reported >= HEARTBEAT_SECONDS:
                reported = time.monotonic()
                self._tell(f"running: {', '.join(list(self._running))}")
        return self.results

    def stop(self) -> None:
        """End running parts and start no more. Safe to call from a signal handler."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    # --- one lane ----------------------------------------------------------------------------------------------------

    def _run_lane(self, lane: Lane) -> None:
        waiting = list(lane.parts)
        complaint = ""
        is_up = False
        try:
            for part in lane.parts:
                complaint = complaint or self._unmet(part)
                if lane.up and not is_up and not complaint:
                    is_up = True
                    complaint = self._up(lane)
                waiting.remove(part)
                self._run_part(part, complaint)
        finally:
            for part in waiting:  # after an exception in this module: other lanes must not wait for ever
                self._ended[part.name].set()
            if is_up and lane.down:
                self._command(lane.down, self.log(COMMON), CLUSTER_SECONDS, stoppable=False)

    def _unmet(self, part: Part) -> str:
        """Wait for the part that must come before; a message if that failed."""
        if part.after is None or part.after not in self._ended:
            return ""
        while not self._ended[part.after].wait(0.2):
            if self.stopped:
                return "interrupted"
        first = next((result for result in self.results if result.part == part.after), None)
        return "" if first is not None and first.ok else f"not run, because {part.after} failed"

    def _up(self, lane: Lane) -> str:
        log = self.log(COMMON)
        log.unlink(missing_ok=True)
        ended = self._command(lane.up, log, CLUSTER_SECONDS)
        if ended.how is End.BY_ITSELF and ended.status == 0:
            return ""
        return f"not run, because `{shlex.join(lane.up[-4:])}` failed; see {log}"

    # --- one part ----------------------------------------------------------------------------------------------------

    def _run_part(self, part: Part, complaint: str) -> None:
        if self.stopped:
            complaint = complaint or "interrupted"
        log = self.log(part.name)
        log.unlink(missing_ok=True)
        began = time.monotonic()
        if complaint:
            result = Result(part.name, 0.0, Counter(failed=1), complaint)
        else:
            self._tell(f"{part.name} begins")
            self._running[part.name] = None
            found, cpu, note = self._run_commands(part, part.commands, log)
            if failed(found) and part.again and not note:
                found, more, note = self._run_again(part, found, log)
                cpu += more
            result = Result(part.name, time.monotonic() - began, found, note, cpu)
            if not result.ok:
                self._clean_up(part)
        with self._lock:
            self._running.pop(part.name, None)
            self.results.append(result)
        self._ended[part.name].set()
        self._tell(f"{part.name} {'passed' if result.ok else 'FAILED'} after {result.seconds:.0f} s: {result}")

    def _run_again(self, part: Part, found: Counter[str], log: Path) -> tuple[Counter[str], float, str]:
        """What failed, for as long as there is time. The counts, the processor time of this, and a note."""
        if time.monotonic() - self._began > LATEST_AGAIN_SECONDS:
            return found, 0.0, "what failed was not run again: it is too late"
        self._tell(f"{part.name}: what failed is run again: {failed(found)} of {found.total()}")
        self._clean_up(part)
        again, cpu, note = self._run_commands(part, (part.again,), log, AGAIN_SECONDS)
        return run_again(found, again), cpu, note

    def _clean_up(self, part: Part) -> None:
        for command in part.cleanup:
            self._command(command, self.log(CLEANUP), CLUSTER_SECONDS, stoppable=False)

    def _run_commands(
        self, part: Part, commands: Iterable[Command], log: Path, most: float = math.inf
    ) -> tuple[Counter[str], float, str]:
        """The counts, the processor time in seconds, and a note."""
        found: Counter[str] = Counter()
        cpu = 0.0
        for command in commands:
            begins_at = log.stat().st_size if log.exists() else 0
            ended = self._command(command, log, part.seconds, most)
            cpu += ended.cpu
            if ended.how is not End.BY_ITSELF:
                found["failed"] += 1
                notes = {
                    End.SILENT: f"nothing was said for {part.seconds:g} s",
                    End.LATE: f"what failed did not end within {most:g} s when it was run again",
                    End.INTERRUPTED: "interrupted",
                }
                return found, cpu, notes[ended.how]
            with log.open("rb") as opened:
                opened.seek(begins_at)
                found += counts(opened.read().decode(errors="replace"), ended.status)
        return found, cpu, ""

    def _command(
        self, command: Command, log: Path, seconds: float, most: float = math.inf, *, stoppable: bool = True
    ) -> Ended:
        with log.open("a") as opened:
            opened.write(f"$ {shlex.join(command)}\n")
        return children.run(command, log, seconds=seconds, most=most, stop=self._stop if stoppable else None)

    def _tell(self, text: str) -> None:
        with self._lock:
            self._say(f"[{time.monotonic() - self._began:4.0f}s] {text}")


def selected(lanes: Iterable[Lane], names: Sequence[str]) -> list[Lane]:
    """The lanes with only these parts and those that must come before; all if none is named."""
    wanted = set(names)
    wanted |= {part.after for lane in lanes for part in lane.parts if part.name in wanted and part.after is not None}
    chosen = []
    for lane in lanes:
        parts = tuple(part for part in lane.parts if not names or part.name in wanted)
        if parts:
            chosen.append(Lane(parts, lane.up, lane.down))
    return chosen
