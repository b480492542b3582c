"""A campaign: faults drawn by a seed, one after the other, while the checker looks on; then peace, and a last look."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from chaos import faults_cluster, faults_jobs, faults_operators
from chaos.arena import Arena, Fault, Pointless
from chaos.ground import TENANTS, Ground, persistently
from chaos.invariants import Checker, Violation
from chaos.jobs import slots
from chaos.operators import Nursery
from chaos.stream import Stream
from chaos.telemetry import Telemetry
from rightpool.cluster.errors import ClusterError, Conflict, NotFound, Unavailable
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.contract import LABEL_JOB

FAULTS: tuple[Fault, ...] = (*faults_operators.FAULTS, *faults_cluster.FAULTS, *faults_jobs.FAULTS)
LIMIT_SECONDS = 180.0
PEACE_SECONDS = 300.0
SETTLED_SECONDS = 3.0
TICK_SECONDS = 0.2

Say = Callable[[str], None]


@dataclass
class Report:
    """What came of a campaign."""

    seed: int
    jobs: int
    injected: Counter[str] = field(default_factory=Counter)
    pointless: int = 0
    events: int = 0
    relists: int = 0
    lives: int = 0
    seconds: float = 0.0
    settled_after: float | None = None
    violations: list[Violation] = field(default_factory=list)
    migrations: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return sum(self.injected.values())

    def table(self) -> str:
        """Markdown: faults by group and kind."""
        groups = {fault.name: fault.group for fault in FAULTS}
        lines = ["| group | fault | injected |", "|---|---|---:|"]
        for name in groups:
            if self.injected[name]:
                lines.append(f"| {groups[name]} | {name} | {self.injected[name]} |")
        lines.append(f"| | **all** | **{self.total}** |")
        return "\n".join(lines)


class Campaign:
    """One run. folder: for the operators' logs."""

    def __init__(self, ground: Ground, seed: int, *, jobs: int, folder: Path | None = None, say: Say = print) -> None:
        self._say = say
        self.folder = folder or Path(tempfile.mkdtemp(prefix="rightpool-chaos-"))
        self._telemetry = Telemetry(ground.running.prometheus_url, seed)
        self._nursery = Nursery(ground.kubeconfig, self.folder)
        self.arena = Arena(
            ground, self._nursery, self._telemetry, Checker(LIMIT_SECONDS), slots(jobs), random.Random(seed)
        )
        self.report = Report(seed, jobs)
        self._stream: Stream | None = None
        self._looked_at = time.monotonic()
        self._told = 0
        self._stopped = False

    def run(self, faults: int, *, rate: float, seconds: float | None = None) -> Report:
        """So many faults, `rate` of them a second, or as many as fit into `seconds`."""
        began = time.monotonic()
        arena = self.arena
        self._clear()
        self._stream = Stream(arena.ground.kubeconfig)
        try:
            arena.tend()
            for slot in arena.slots:
                arena.create(slot)
            self._until(lambda: not self.arena.checker.lasting(), 300)
            began = time.monotonic()
            due = began
            while not self._enough(faults, None if seconds is None else began + seconds):
                self._inject()
                due = max(due + arena.chance.expovariate(rate), time.monotonic() - 2)
                self._watch(max(0.0, due - time.monotonic()))
            self._say("no more faults; what is broken is mended, and the fleet must come to rest")
            arena.mend(everything=True)
            self._settle()
        finally:
            self.report.seconds = time.monotonic() - began
            self._end()
        return self.report

    def stop(self) -> None:
        """No more faults: go on to the last look. May be called from a signal's handler."""
        self._stopped = True

    def _enough(self, faults: int, deadline: float | None) -> bool:
        late = deadline is not None and time.monotonic() > deadline
        return self._stopped or late or self.report.total >= faults

    # --- faults ------------------------------------------------------------------------------------------------------

    def _inject(self) -> None:
        arena = self.arena
        weights = [fault.weight for fault in FAULTS]
        fault = arena.chance.choices(FAULTS, weights)[0]
        if arena.offline and not fault.offline:
            self.report.pointless += 1
            return
        try:
            mend = fault.do(arena)
        except (Pointless, Unavailable, Conflict, NotFound, IndexError):
            self.report.pointless += 1
            return
        self.report.injected[fault.name] += 1
        if mend is not None:
            arena.mend_later(fault.name, *mend)
        total = self.report.total
        if total % 100 == 0:
            self._say(f"{total} faults, {arena.checker.events} events, {len(arena.checker.violations)} violations")

    # --- looking on --------------------------------------------------------------------------------------------------

    def _watch(self, seconds: float) -> None:
        """Look at what comes, mend what is due, for that long and at least once."""
        end = time.monotonic() + seconds
        while True:
            self._look()
            self.arena.mend()
            self.report.lives += self.arena.tend()
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, TICK_SECONDS))

    def _look(self) -> None:
        assert self._stream is not None
        checker = self.arena.checker
        for event in self._stream.take():
            checker.see(event)
        now = time.monotonic()
        checker.tick(now - self._looked_at if self.arena.able else 0.0)
        self._looked_at = now
        for violation in checker.violations[self._told :]:
            self._say(f"VIOLATION {time.strftime('%H:%M:%S')} {violation}")
        self._told = len(checker.violations)

    def _until(self, check: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._watch(TICK_SECONDS)
            if check():
                return True
        return False

    def _settle(self) -> None:
        """Everything must be in its place, and stay there, within five minutes."""
        began = time.monotonic()
        calm_since: float | None = None
        while time.monotonic() - began < PEACE_SECONDS:
            self._watch(0.5)
            if self.arena.checker.lasting() or self._unsettled():
                calm_since = None
            else:
                calm_since = calm_since or time.monotonic()
                if time.monotonic() - calm_since > SETTLED_SECONDS:
                    self.report.settled_after = calm_since - began
                    return
        for violation in self.arena.checker.lasting():
            self.arena.checker.violations.append(violation)
        for about, message in self._unsettled():
            self.arena.checker.violations.append(Violation("not settled", about, message))
        self._look()

    def _unsettled(self) -> list[tuple[str, str]]:
        """Jobs that are not where they should be, though nothing is broken any more."""
        found = []
        try:
            bodies = self.arena.client.list_all(PROFILED_JOBS)
        except ClusterError as error:
            return [("the API server", error.message)]
        for body in bodies:
            status = body.get("status") or {}
            placed: dict[str, str] = next((c for c in status.get("conditions") or () if c["type"] == "Placed"), {})
            fine = placed.get("status") == "True" or placed.get("reason") in ("JobCompleted", "JobFailed")
            if not fine:
                about = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
                found.append((about, f"Placed is {placed.get('reason')}: {placed.get('message')}"))
        return found

    # --- beginning and end -------------------------------------------------------------------------------------------

    def _clear(self) -> None:
        """No job of an earlier campaign, and no pod of one: what still writes holds up who comes next, as it must."""
        client = self.arena.client
        for namespace in TENANTS:
            for body in client.list_all(PROFILED_JOBS, namespace):
                persistently(lambda body=body: self._remove(body))  # type: ignore[misc]
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (
            client.list_all(PROFILED_JOBS) or client.list_all(PODS, labels=LABEL_JOB)
        ):
            time.sleep(0.5)

    def _remove(self, body: dict[str, dict[str, str]]) -> None:
        about = body["metadata"]
        try:
            self.arena.client.delete(PROFILED_JOBS, about["name"], about["namespace"], propagation="Background")
        except NotFound:
            pass

    def _end(self) -> None:
        self.arena.close()
        try:
            for body in self.arena.client.list_all(PROFILED_JOBS):
                for entry in (body.get("status") or {}).get("history") or ():
                    self.report.migrations[entry["outcome"]] += 1
        except ClusterError:
            pass
        self._nursery.close()
        self._telemetry.close()
        if self._stream is not None:
            self._stream.stop()
            self.report.relists = self._stream.relists
        self.report.events = self.arena.checker.events
        self.report.violations = self.arena.checker.violations
