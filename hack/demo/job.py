"""A ProfiledJob as read from the cluster, for the demo and the end-to-end tests."""

import http.client
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.api import Api
from devcluster.spec import DevclusterError
from rightpool.contract import GROUP, VERSION


class StoryFailed(Exception):
    """An expected change did not happen. The message names it and the state of the job."""


@dataclass(frozen=True)
class Job:
    """One reading of a ProfiledJob."""

    document: dict[str, Any]

    @property
    def status(self) -> dict[str, Any]:
        """The status, empty before the operator has written one."""
        found: dict[str, Any] = self.document.get("status") or {}
        return found

    @property
    def pool(self) -> str | None:
        """The pool of its placement."""
        return (self.status.get("placement") or {}).get("pool")

    @property
    def chips(self) -> int | None:
        """The chips of its placement."""
        return (self.status.get("placement") or {}).get("chips")

    @property
    def phase(self) -> str | None:
        """Phase of the migration, None where there is none."""
        return (self.status.get("migration") or {}).get("phase")

    @property
    def history(self) -> list[dict[str, Any]]:
        """The ledger."""
        return list(self.status.get("history") or [])

    def condition(self, kind: str) -> dict[str, str]:
        """A condition; {} where it is absent."""
        for condition in self.status.get("conditions") or []:
            if condition["type"] == kind:
                return dict(condition)
        return {}

    def conditions_text(self) -> str:
        """A summary of its state for error messages."""
        lines = [
            f"  {c['type']}={c['status']} {c['reason']}: {c.get('message', '')}"
            for c in self.status.get("conditions") or []
        ]
        return "\n".join(
            [f"  placement {self.status.get('placement')}, migration {self.status.get('migration')}", *lines]
        )


Tells = Callable[[Job], Iterable[tuple[str, str, str]]]
"""What is told of a job as it is: topic, state and text. It is said again where the state of its topic has changed."""


def conditions(job: Job) -> Iterator[tuple[str, str, str]]:
    """Everything that its conditions say, and each phase of a migration."""
    for condition in job.status.get("conditions") or []:
        line = f"{condition['type']}={condition['status']} {condition['reason']}"
        yield condition["type"], line, f"{line}: {condition.get('message', '')}"
    if job.phase:
        migration = job.status["migration"]
        line = f"{migration['id']} {job.phase}{' (back)' if migration.get('rollingBack') else ''}"
        yield "phase", line, line


class Teller:
    """Says of a job what is news."""

    def __init__(self, name: str, say: Callable[[str], None], tells: Tells = conditions) -> None:
        self._name, self._say, self._tells = name, say, tells
        self._last: dict[str, str] = {}

    def tell(self, job: Job) -> None:
        """What was not so before."""
        for topic, state, text in self._tells(job):
            if self._last.get(topic) != state:
                self._last[topic] = state
                self._say(f"{self._name}: {text}")


class Watcher:
    """Reads a job repeatedly and reports its changes.

    Over one open connection: each kubectl takes a tenth of a second of processor time.
    """

    def __init__(
        self, kubeconfig: Path, namespace: str, name: str, say: Callable[[str], None], tells: Tells = conditions
    ) -> None:
        self._api, self.namespace, self.name = Api(kubeconfig), namespace, name
        self._teller = Teller(name, say, tells)
        self._path = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/profiledjobs/{name}"

    def read(self) -> Job:
        """Read the job and report its changes."""
        job = Job(self._api.request("GET", self._path))
        self._teller.tell(job)
        return job

    def until(self, what: str, holds: Callable[[Job], bool], seconds: float) -> Job:
        """Wait until the check holds. Raises StoryFailed with the job's state after the time limit."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                job = self.read()
                if holds(job):
                    return job
                conditions_text = job.conditions_text()
            except (DevclusterError, OSError, http.client.HTTPException) as error:
                conditions_text = f"  {error}"
            if time.monotonic() > deadline:
                raise StoryFailed(
                    f"{self.namespace}/{self.name}: not within {seconds:.0f} s: {what}\n{conditions_text}"
                )
            time.sleep(1.0)
