"""Requests to one of our own API servers without kubectl, for what has to be fast or has to keep listening.

kubectl holds itself back to a few requests a second and waits for one object after the other: scaling a pool to a
thousand nodes takes it minutes. Certificates come inline from our own kubeconfigs; somebody else's cluster, with any
other way to log in, is reached by kubectl alone.
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
    """The server said no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"API server: {status} {message}")
        self.status = status


class Api:
    """One connection for each thread, kept open: a TLS handshake costs more than a request."""

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

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        connection: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect(_SECONDS)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        except (OSError, http.client.HTTPException):
            connection.close()
            self._local.connection = None
            raise
        if response.status >= 300:
            raise ApiError(response.status, str(answer.get("message", "")))
        return answer

    def lines(self, path: str, *, seconds: float) -> Iterator[dict[str, Any]]:
        """A watch: one object for each line, on a connection of its own."""
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
        """The first failure is raised once all have been tried."""
        with ThreadPoolExecutor(_PARALLEL) as pool:
            for result in [pool.submit(action, item) for item in items]:
                result.result()
