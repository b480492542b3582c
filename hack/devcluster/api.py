"""Requests to the API server of a devcluster without kubectl, for bulk requests and watches.

kubectl limits itself to a few requests a second and handles objects one after the other: scaling a pool to a thousand
nodes takes it minutes. This client reads only kubeconfigs with inline certificates, as the devcluster writes them;
other clusters are reached by kubectl.
"""

import base64
import http.client
import json
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import yaml

from devcluster.spec import DevclusterError

_SECONDS: Final = 30.0
_PARALLEL: Final = 16
_Item = TypeVar("_Item")


class ApiError(DevclusterError):
    """The server rejected a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"API server: {status} {message}")
        self.status = status


class Api:
    """One open connection for each thread, because a TLS handshake costs more than a request."""

    def __init__(self, kubeconfig: Path) -> None:
        content = yaml.safe_load(kubeconfig.read_text())
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        server = urlsplit(cluster["server"])
        self._host, self._port = server.hostname or "", server.port or 443
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as pair:  # ssl reads client certificates from files only
            pair.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
            pair.flush()
            self._context.load_cert_chain(pair.name)
        self._local = threading.local()

    def _connect(self, seconds: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=seconds, context=self._context)

    def request(self, method: str, path: str, body: Any = None, *, content: str = "application/json") -> dict[str, Any]:
        """content: media type of the body."""
        kept: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        try:
            status, answer = self._exchange(kept or self._connect(_SECONDS), method, path, body, content)
        except http.client.RemoteDisconnected:
            if kept is None or method == "POST":
                raise
            # The server has restarted since the last request, or was tired of an idle connection.
            status, answer = self._exchange(self._connect(_SECONDS), method, path, body, content)
        if status >= 300:
            raise ApiError(status, str(answer.get("message", "")))
        return answer

    def _exchange(
        self, connection: http.client.HTTPSConnection, method: str, path: str, body: Any, content: str
    ) -> tuple[int, dict[str, Any]]:
        self._local.connection = connection
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": content})
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        except (OSError, http.client.HTTPException):
            connection.close()
            self._local.connection = None
            raise
        return response.status, answer

    def lines(self, path: str, *, seconds: float) -> Iterator[dict[str, Any]]:
        """A watch: one object for each line, on a separate connection."""
        connection = self._connect(seconds)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            if response.status >= 300:
                raise ApiError(response.status, response.read().decode(errors="replace")[:200])
            for line in response:
                yield json.loads(line)
        finally:
            connection.close()

    @staticmethod
    def in_parallel(action: Callable[[_Item], object], items: Iterable[_Item]) -> None:
        """Call the function for all items. Raises the first failure after all have been tried."""
        with ThreadPoolExecutor(_PARALLEL) as pool:
            for result in [pool.submit(action, item) for item in items]:
                result.result()
