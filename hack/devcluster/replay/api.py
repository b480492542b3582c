"""A small client of the API server, on the standard library: get, patch, and a watch as it comes.

The project's Kubernetes client builds a model object for everything it reads; a first list of ten thousand pods would
take it a minute and a gigabyte. Here each object is cut down as soon as its page is read.
"""

import base64
import http.client
import json
import ssl
import tempfile
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

_WATCH_SECONDS: Final = 300
_TIMEOUT_SECONDS: Final = 30.0


class ApiError(Exception):
    """The API server said no. status: of HTTP; gone: the resource version is too old to watch from."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status

    @property
    def gone(self) -> bool:
        return self.status == http.client.GONE


class Api:
    """One connection for each call: there are few, and a watch keeps its own."""

    def __init__(self, server: str, context: ssl.SSLContext | None, token: str | None = None) -> None:
        self._url = urllib.parse.urlsplit(server)
        self._context = context
        self._token = token

    @classmethod
    def from_kubeconfig(cls, path: Path) -> "Api":
        """The current context of a kubeconfig: certificates as files or inline, or a token."""
        config = yaml.safe_load(path.read_text(encoding="utf-8"))

        def named(kind: str, name: str) -> dict[str, Any]:
            return next(entry for entry in config[f"{kind}s"] if entry["name"] == name)[kind] or {}

        context = named("context", config["current-context"])
        cluster, user = named("cluster", context["cluster"]), named("user", context["user"])
        if not cluster["server"].startswith("https:"):
            return cls(cluster["server"], None, user.get("token"))
        tls = ssl.create_default_context()
        with tempfile.TemporaryDirectory() as folder:

            def file(entry: dict[str, Any], key: str) -> str | None:
                if f"{key}-data" in entry:
                    inline = Path(folder) / key
                    inline.write_bytes(base64.b64decode(entry[f"{key}-data"]))
                    return str(inline)
                return str(path.parent / entry[key]) if key in entry else None

            authority, certificate = file(cluster, "certificate-authority"), file(user, "client-certificate")
            if authority is not None:
                tls.load_verify_locations(authority)
            if certificate is not None:
                tls.load_cert_chain(certificate, file(user, "client-key"))
        return cls(cluster["server"], tls, user.get("token"))

    def get(self, path: str, **query: str) -> dict[str, Any]:
        with self._open("GET", path, query, _TIMEOUT_SECONDS) as answer:
            return _object(answer.read())

    def patch(self, path: str, body: dict[str, Any]) -> None:
        """A strategic merge patch: conditions are merged by their type."""
        with self._open("PATCH", path, {}, _TIMEOUT_SECONDS, json.dumps(body)) as answer:
            answer.read()

    def watch(self, path: str, **query: str) -> Iterator[dict[str, Any]]:
        """Events until the server ends the watch, which it does after some minutes."""
        query |= {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(_WATCH_SECONDS)}
        with self._open("GET", path, query, _WATCH_SECONDS + _TIMEOUT_SECONDS) as answer:
            for line in answer:
                yield _object(line)

    def _open(
        self, method: str, path: str, query: dict[str, str], timeout: float, body: str | None = None
    ) -> "_Answer":
        host, port = self._url.hostname or "", self._url.port
        connection = (
            http.client.HTTPConnection(host, port, timeout=timeout)
            if self._context is None
            else http.client.HTTPSConnection(host, port, timeout=timeout, context=self._context)
        )
        headers = {"Accept": "application/json", "User-Agent": "rightpool-devcluster-replay"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers["Content-Type"] = "application/strategic-merge-patch+json"
        target = path + (f"?{urllib.parse.urlencode(query)}" if query else "")
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise ApiError(response.status, response.read(2000).decode(errors="replace"))
        except BaseException:
            connection.close()
            raise
        return _Answer(connection, response)


@dataclass
class _Answer:
    connection: http.client.HTTPConnection
    response: http.client.HTTPResponse

    def __enter__(self) -> http.client.HTTPResponse:
        return self.response

    def __exit__(self, *_: object) -> None:
        self.connection.close()


def _object(text: bytes) -> dict[str, Any]:
    value = json.loads(text)
    assert isinstance(value, dict)
    return value
