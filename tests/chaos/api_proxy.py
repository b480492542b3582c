"""A proxy before the API server that answers as one that is overloaded or still starting does."""

from __future__ import annotations

import http.server
import json
import threading
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import urllib3
import yaml
from kubernetes import config as kubernetes_config

from rightpool.contract import GROUP

_HOP_BY_HOP: Final = frozenset({"connection", "content-length", "host", "transfer-encoding", "accept-encoding"})


class ApiMode(StrEnum):
    """How the API server answers."""

    NORMAL = "normal"
    UNAVAILABLE = "503"  # to every request
    OVERLOADED = "429"  # to every request, with a Retry-After of one second
    HALF_DISCOVERY = "half-discovery"  # it serves no custom resources yet


class ApiProxy:
    """Listens on a port of its own, without TLS. mode may be changed at any time.

    refused: how many requests were not answered as the API server would.
    """

    def __init__(self, kubeconfig: Path, folder: Path, mode: ApiMode) -> None:
        self.mode = mode
        self.refused = 0
        self._api = kubernetes_config.new_client_from_config(str(kubeconfig))
        settings = self._api.configuration
        self._upstream = settings.host
        self._pool = urllib3.PoolManager(
            16, ca_certs=settings.ssl_ca_cert, cert_file=settings.cert_file, key_file=settings.key_file
        )
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="api_proxy", daemon=True).start()
        config = yaml.safe_load(kubeconfig.read_text())
        for entry in config["clusters"]:
            entry["cluster"] = {"server": f"http://127.0.0.1:{port}"}
        self.kubeconfig = folder / f"api-proxy-{port}.kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(config))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def refusal(self, path: str) -> tuple[int, dict[str, Any]] | None:
        """Status and body of an answer in place of the API server's."""
        mode = self.mode
        if mode is ApiMode.HALF_DISCOVERY:
            if path == "/apis":
                groups = self.forward("GET", path, {}, None).json()
                groups["groups"] = [group for group in groups["groups"] if group["name"] != GROUP]
                return 200, groups
            if not path.startswith(f"/apis/{GROUP}"):
                return None
            return 404, {"kind": "Status", "code": 404, "message": "the server could not find the requested resource"}
        if mode is ApiMode.NORMAL:
            return None
        code = 429 if mode is ApiMode.OVERLOADED else 503
        return code, {"kind": "Status", "code": code, "message": f"{mode.name.lower()} by the test"}

    def forward(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> urllib3.BaseHTTPResponse:
        """The API server's own answer, not read yet."""
        return self._pool.request(
            method,
            self._upstream + path,
            headers=headers,
            body=body,
            preload_content=False,
            redirect=False,
            retries=False,
        )


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Operators are killed during requests: nothing to report."""


def _handler(proxy: ApiProxy) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else None
            refusal = proxy.refusal(self.path)
            if refusal is not None:
                proxy.refused += 1
                self._say(refusal[0], json.dumps(refusal[1]).encode())
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            try:
                answer = proxy.forward(self.command, self.path, headers, body)
            except urllib3.exceptions.HTTPError:
                self.close_connection = True
                return
            if "watch=" in self.path and answer.status == 200:
                self._stream(answer)
            else:
                self._say(answer.status, answer.read())
                answer.release_conn()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

        def _say(self, status: int, text: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            if status == 429:
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(text)

        def _stream(self, answer: urllib3.BaseHTTPResponse) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            try:
                for piece in answer.stream():
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.write(b"0\r\n\r\n")
            except urllib3.exceptions.HTTPError:
                self.close_connection = True
            finally:
                answer.close()

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are not logged."""

    return Handler
