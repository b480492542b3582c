"""Long-running processes: started once, recorded, found again by a later command, stopped without
affecting unrelated processes.

The kernel reuses pids. A record therefore holds the pid with the start time from /proc/<pid>/stat and the boot ID; only
a process that matches all three is the recorded one.
"""

import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from devcluster.spec import DevclusterError

PACKAGE_ROOT: Final = str(
    Path(__file__).resolve().parent.parent
)  # for programs that are Python modules of this package
KILL_SECONDS: Final = 30.0  # the kernel may take this long on a busy machine
STOP_SECONDS: Final = 5.0  # kube-apiserver and etcd would drain for longer; their data survives SIGKILL


@dataclass(frozen=True)
class Identity:
    """Identifies one process, also after its pid was reused."""

    pid: int
    start_ticks: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> "Identity | None":
        ticks = start_ticks(pid)
        return None if ticks is None else cls(pid, ticks, boot_id())

    def alive(self) -> bool:
        return self.boot == boot_id() and start_ticks(self.pid) == self.start_ticks

    def signal(self, number: int) -> None:
        if self.alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/<pid>/stat; None when there is no such process, or only its zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses and may itself hold spaces and parentheses.
    rest = text[text.rindex(")") + 2 :].split()
    return None if rest[0] in "ZX" else int(rest[19])


@dataclass(frozen=True)
class Program:
    """A process that a cluster wants running."""

    name: str
    command: tuple[str, ...]
    ports: tuple[int, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    namespace: str | None = None  # network namespace; None: the host's
    reads: tuple[Path, ...] = ()  # configuration files: changed content means a restart
    ready: Callable[[], bool] | None = None  # probe; None: only whether the process exists

    def argv(self) -> tuple[str, ...]:
        if self.namespace is None:
            return self.command
        # Not `ip netns exec`: it would give every process a separate mount namespace, in which containerd does not see
        # the kubelet's mounts, and would remount /sys without cgroups.
        return ("nsenter", f"--net=/run/netns/{self.namespace}", "--", *self.command)

    def fingerprint(self) -> str:
        digest = hashlib.sha256(json.dumps([self.argv(), dict(self.environment)]).encode())
        for path in self.reads:
            digest.update(path.read_bytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Record:
    name: str
    identity: Identity
    fingerprint: str
    ports: tuple[int, ...]


class Supervisor:
    """The processes of one state directory."""

    def __init__(self, state: Path) -> None:
        self._pids = state / "pid"
        self._logs = state / "log"

    def log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def records(self) -> list[Record]:
        found = (self.record(path.stem) for path in sorted(self._pids.glob("*.json")))
        return [record for record in found if record is not None]

    def record(self, name: str) -> Record | None:
        """The record of a program. None also for a damaged file: processes are also found by namespace and cgroup."""
        try:
            raw = json.loads((self._pids / f"{name}.json").read_text())
            return Record(raw["name"], Identity(**raw["identity"]), raw["fingerprint"], tuple(raw["ports"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def running(self, name: str) -> bool:
        record = self.record(name)
        return record is not None and record.identity.alive()

    def ensure(self, program: Program) -> str | None:
        """Start or restart a program if needed. Returns what was done, or None."""
        record = self.record(program.name)
        fingerprint = program.fingerprint()
        did = "started"
        if record is not None and record.identity.alive():
            if record.fingerprint == fingerprint:
                return None
            did = "restarted (new settings)"
            self.stop([program.name])
        elif record is not None:
            did = "restarted (it had died)"
        self._start(program, fingerprint)
        return did

    def _start(self, program: Program, fingerprint: str) -> None:
        self._pids.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        with self.log(program.name).open("ab") as log:
            child = subprocess.Popen(
                program.argv(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **program.environment},
                cwd=self._pids.parent,
                start_new_session=True,
            )
        identity = Identity.of(child.pid)
        if identity is None:
            raise DevclusterError(self._ended(program.name))
        child.returncode = 0  # the process continues after this command: suppress the warning of Popen
        text = json.dumps(asdict(Record(program.name, identity, fingerprint, program.ports)))
        temporary = self._pids / f".{program.name}.tmp"
        temporary.write_text(text)
        temporary.replace(self._pids / f"{program.name}.json")

    def stop(self, names: Iterable[str], *, grace: float = STOP_SECONDS) -> None:
        """Stop these together: SIGTERM to all, one grace period, then SIGKILL to the rest."""
        records = [record for name in names if (record := self.record(name)) is not None]
        stop_all([record.identity for record in records], grace=grace)
        for record in records:
            (self._pids / f"{record.name}.json").unlink(missing_ok=True)

    def tail(self, name: str, lines: int = 5) -> str:
        try:
            return "\n".join(self.log(name).read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return "(no log)"

    def wait(self, program: Program, *, seconds: float) -> None:
        """Wait until it answers. Fails at once if it ends; errors name its log."""
        deadline = time.monotonic() + seconds
        while not (program.ready is None or program.ready()):
            if not self.running(program.name):
                raise DevclusterError(self._ended(program.name))
            if time.monotonic() > deadline:
                raise DevclusterError(
                    f"{program.name} did not answer within {seconds:.0f} s; {self._says(program.name)}"
                )
            time.sleep(0.1)

    def _ended(self, name: str) -> str:
        return f"{name} ended; {self._says(name)}"

    def _says(self, name: str) -> str:
        return f"{self.log(name)} says:\n{self.tail(name)}"


def stop_all(identities: Iterable[Identity], *, grace: float = STOP_SECONDS) -> None:
    targets = [identity for identity in identities if identity.alive()]
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, KILL_SECONDS)):
        for identity in targets:
            identity.signal(number)
        deadline = time.monotonic() + patience
        while targets and time.monotonic() < deadline:
            _reap(targets)
            targets = [identity for identity in targets if identity.alive()]
            time.sleep(0.05)


def _reap(identities: Iterable[Identity]) -> None:
    """Reap a child of this process. Those of an earlier command are reaped by init."""
    for identity in identities:
        try:
            os.waitpid(identity.pid, os.WNOHANG)
        except ChildProcessError:
            pass
