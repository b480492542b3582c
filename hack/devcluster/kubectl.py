"""kubectl as a function."""

import json
import re
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from devcluster import build
from devcluster.spec import DevclusterError

_SECONDS = 1200  # `wait` has limits of its own, of up to 15 minutes
_ESTABLISHED_SECONDS = 120.0
# kubectl waits ten seconds for a connection, which a machine that does much else may take. The request was not sent, so
# that it may be repeated. A server that is not there refuses a connection at once: that is an answer.
_UNSENT = re.compile(r"^(?!Error from server).*(TLS handshake timeout|dial tcp \S+: i/o timeout)", re.MULTILINE)
_ATTEMPTS = 10


class Kubectl:
    """kubectl bound to one cluster."""

    def __init__(self, kubeconfig: Path, program: str | None = None) -> None:
        self._kubeconfig = kubeconfig
        self._program = program or build.binary("kubectl")

    def __call__(self, *arguments: str, stdin: str | None = None, seconds: float = _SECONDS) -> str:
        command = [self._program, f"--kubeconfig={self._kubeconfig}", *arguments]
        shown = f"kubectl {' '.join(arguments[:6])}"
        for _ in range(_ATTEMPTS):
            try:
                result = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=seconds)
            except subprocess.TimeoutExpired:
                raise DevclusterError(f"{shown}: no answer within {seconds:.0f} s") from None
            if result.returncode == 0:
                return result.stdout
            if not _UNSENT.search(result.stderr):
                break
        raise DevclusterError(f"{shown}: {result.stderr.strip()}")

    def json(self, *arguments: str) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self(*arguments, "--output=json"))
        return parsed

    def apply(self, objects: Iterable[Mapping[str, Any]], *extra: str) -> None:
        """Server-side apply of all objects in one call."""
        items = list(objects)
        if items:
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
            self("apply", "--server-side", "--force-conflicts", "--field-manager=devcluster", *extra, "-f-", stdin=text)

    def install(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Apply namespaces and definitions first: the API server takes no object of a kind or namespace that is new to
        it. `kubectl wait` fails on a definition that has no conditions yet."""
        items = list(objects)
        first = [item for item in items if item["kind"] in ("Namespace", "CustomResourceDefinition")]
        self.apply(first)
        deadline = time.monotonic() + _ESTABLISHED_SECONDS
        for name in (item["metadata"]["name"] for item in first if item["kind"] == "CustomResourceDefinition"):
            while not self._established(name):
                if time.monotonic() > deadline:
                    raise DevclusterError(f"definition {name} is not established")
                time.sleep(0.2)
        self.apply(item for item in items if item not in first)

    def _established(self, name: str) -> bool:
        conditions = self.json("get", "customresourcedefinition", name).get("status", {}).get("conditions") or ()
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
