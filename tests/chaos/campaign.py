"""A campaign: inject random faults one after the other while the checker runs, then let the fleet settle."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from devcluster import cluster as clusters
from rightpool.api.kubernetes import JOBS, Resource
from rightpool.cluster.errors import ClusterError, Conflict, NotFound, Unavailable
from rightpool.cluster.resources import NODES, PODS, PROFILED_JOBS
from rightpool.contract import LABEL_JOB
from tests.chaos import faults_cluster, faults_jobs, faults_objects, faults_operators
from tests.chaos.components import Components
from tests.chaos.context import Fault, FaultContext, NotApplicable
from tests.chaos.environment import SYSTEM, TENANTS, Environment, persistently
from tests.chaos.invariants import Checker, Violation
from tests.chaos.jobs import slots
from tests.chaos.leadership import Leadership
from tests.chaos.operators import ProcessPool
from tests.chaos.prometheus_proxy import PrometheusProxy
from tests.chaos.stream import Stream
from tests.patience import PATIENCE

FAULTS: tuple[Fault, ...] = (
    *faults_operators.FAULTS,
    *faults_cluster.FAULTS,
    *faults_jobs.FAULTS,
    *faults_objects.FAULTS,
)
LIMIT_SECONDS = 180.0
SETTLE_LIMIT_SECONDS = PATIENCE
SETTLED_SECONDS = 3.0
TICK_SECONDS = 0.2
LONGEST_TICK = 2.0  # while this process itself did not run, it does not know whether the operators did

Say = Callable[[str], None]


@dataclass
class Report:
    """The result of a campaign."""

    seed: int
    jobs: int
    injected: Counter[str] = field(default_factory=Counter)
    not_applicable: int = 0
    events: int = 0
    relists: int = 0
    replaced: int = 0
    seconds: float = 0.0
    able_seconds: float = 0.0
    """In which an operator led undisturbed: the limit of what may last counts these."""
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
    """One campaign. folder: for the operators' logs."""

    def __init__(
        self, environment: Environment, seed: int, *, jobs: int, folder: Path | None = None, say: Say = print
    ) -> None:
        self._say = say
        self.folder = folder or Path(tempfile.mkdtemp(prefix="rightpool-chaos-"))
        self._prometheus = PrometheusProxy(environment.running.prometheus_url, seed)
        self._process_pool = ProcessPool(environment.kubeconfig, self.folder)
        spec = environment.spec
        self.context = FaultContext(
            environment,
            Components(spec.state, clusters.programs(spec, root=environment.running.with_node)),
            self._process_pool,
            self._prometheus,
            Leadership(),
            Checker(LIMIT_SECONDS),
            slots(jobs),
            random.Random(seed),
        )
        self.report = Report(seed, jobs)
        self._stream: Stream | None = None
        self._checked_at = time.monotonic()
        self._reported = 0
        self._stopped = False

    def run(self, faults: int, *, rate: float, seconds: float | None = None) -> Report:
        """Inject `faults` faults at `rate` a second, or as many as fit into `seconds`."""
        began = time.monotonic()
        context = self.context
        self._clear()
        self._stream = Stream(context.environment.kubeconfig)
        context.leadership.follow(context.environment.kubeconfig, faults_operators.LEASE, SYSTEM)
        try:
            context.replace_ended()
            for slot in context.slots:
                context.create(slot)
            self._until(lambda: not self.context.checker.lasting(), PATIENCE)
            began = time.monotonic()
            due = began
            while not self._enough(faults, None if seconds is None else began + seconds):
                self._inject()
                due = max(due + context.rng.expovariate(rate), time.monotonic() - 2)
                self._watch(max(0.0, due - time.monotonic()))
            self._say("no more faults; repairing what is broken and waiting for the fleet to settle")
            context.repair(everything=True)
            self._settle()
        finally:
            self.report.seconds = time.monotonic() - began
            self._end()
        return self.report

    def stop(self) -> None:
        """Inject no more faults and go on to the final check. Safe to call from a signal handler."""
        self._stopped = True

    def _enough(self, faults: int, deadline: float | None) -> bool:
        late = deadline is not None and time.monotonic() > deadline
        return self._stopped or late or self.report.total >= faults

    # --- faults ------------------------------------------------------------------------------------------------------

    def _inject(self) -> None:
        context = self.context
        weights = [fault.weight for fault in FAULTS]
        fault = context.rng.choices(FAULTS, weights)[0]
        if context.offline and not fault.offline:
            self.report.not_applicable += 1
            return
        try:
            fault.do(context)
        except (NotApplicable, Unavailable, Conflict, NotFound, IndexError):
            self.report.not_applicable += 1
            return
        self.report.injected[fault.name] += 1
        total = self.report.total
        if total % 100 == 0:
            self._say(f"{total} faults, {context.checker.events} events, {len(context.checker.violations)} violations")

    # --- checking ----------------------------------------------------------------------------------------------------

    def _watch(self, seconds: float) -> None:
        """Check new events and run due repairs for that long, at least once."""
        end = time.monotonic() + seconds
        while True:
            self._check()
            self.context.repair()
            self.report.replaced += self.context.replace_ended()
            for name in self.context.components.start_ended():
                self._say(f"{name} ended by itself and is started again")
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, TICK_SECONDS))

    def _check(self) -> None:
        assert self._stream is not None
        checker = self.context.checker
        for event in self._stream.take():
            checker.observe(event)
        now = time.monotonic()
        able = min(now - self._checked_at, LONGEST_TICK) if self.context.can_act else 0.0
        self.report.able_seconds += able
        checker.tick(able)
        self._checked_at = now
        for violation in checker.violations[self._reported :]:
            self._say(f"VIOLATION {time.strftime('%H:%M:%S')} {violation}")
        self._reported = len(checker.violations)

    def _until(self, check: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._watch(TICK_SECONDS)
            if check():
                return True
        return False

    def _settle(self) -> None:
        """Wait until every job is where it should be and stays there; report what is not within the limit."""
        began = time.monotonic()
        settled_since: float | None = None
        while time.monotonic() - began < SETTLE_LIMIT_SECONDS:
            self._watch(0.5)
            if self.context.checker.lasting() or self._unsettled() or not self.report.able_seconds:
                settled_since = None
            else:
                settled_since = settled_since or time.monotonic()
                if time.monotonic() - settled_since > SETTLED_SECONDS:
                    self.report.settled_after = settled_since - began
                    for invariant, body, message in self.context.checker.objects.lost():
                        about = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
                        self.context.checker.violations.append(Violation(invariant, about, message))
                    return
        for violation in self.context.checker.lasting():
            self.context.checker.violations.append(violation)
        if not self.report.able_seconds:  # then no limit of time was counted, either
            violation = Violation("not settled", "the operators", "none was seen to lead undisturbed")
            self.context.checker.violations.append(violation)
        for about, message in self._unsettled():
            message = "; ".join([message, *self._pods_not_ready(about)])
            self.context.checker.violations.append(Violation("not settled", about, message))
        self._check()

    def _pods_not_ready(self, about: str) -> list[str]:
        """What Kubernetes says of a job's pods that are not ready: when the report is read the cluster is gone."""
        found = []
        try:
            nodes = {node["metadata"]["name"] for node in self.context.client.list_all(NODES)}
            slot = next(slot for slot in self.context.slots if str(slot) == about)
            for pod in self.context.pods(slot):
                conditions = {c["type"]: c for c in pod["status"].get("conditions") or ()}
                if conditions.get("Ready", {}).get("status") == "True":
                    continue
                node = pod["spec"].get("nodeName")
                where = "no node" if node is None else node if node in nodes else f"{node}, which is gone"
                states = [f"{c['type']} {c['status']} {c.get('message', '')}" for c in conditions.values()]
                ends = pod["metadata"].get("deletionTimestamp")
                phase = f"{pod['status'].get('phase')}{f', deleted at {ends}' if ends else ''}"
                found.append(f"pod {pod['metadata']['name']} on {where}: {phase} ({', '.join(states)})")
        except ClusterError as error:
            found.append(f"its pods can't be listed: {error.message}")
        return found

    def _unsettled(self) -> list[tuple[str, str]]:
        """Jobs that are not placed although nothing is broken any more."""
        found = []
        try:
            bodies = self.context.client.list_all(PROFILED_JOBS)
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
        """Remove the jobs and pods of an earlier campaign. A new Revision would rightly wait for such pods to end."""
        client = self.context.client
        for namespace in TENANTS:
            for body in client.list_all(PROFILED_JOBS, namespace):
                persistently(lambda body=body: self._remove(PROFILED_JOBS, body))  # type: ignore[misc]
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and (
            client.list_all(PROFILED_JOBS) or client.list_all(PODS, labels=LABEL_JOB)
        ):
            time.sleep(0.5)
        for namespace in TENANTS:
            for body in client.list_all(JOBS, namespace):  # users' own stay where their ProfiledJobs go
                persistently(lambda body=body: self._remove(JOBS, body))  # type: ignore[misc]

    def _remove(self, resource: Resource, body: dict[str, dict[str, str]]) -> None:
        about = body["metadata"]
        try:
            self.context.client.delete(resource, about["name"], about["namespace"], propagation="Background")
        except NotFound:
            pass

    def _end(self) -> None:
        self.context.components.close()
        self.context.leadership.stop()
        try:
            for body in self.context.client.list_all(PROFILED_JOBS):
                for entry in (body.get("status") or {}).get("history") or ():
                    self.report.migrations[entry["outcome"]] += 1
        except ClusterError:
            pass
        self._process_pool.close()
        self._prometheus.close()
        if self._stream is not None:
            self._stream.stop()
            self.report.relists = self._stream.relists
        self.report.events = self.context.checker.events
        self.report.violations = self.context.checker.violations
