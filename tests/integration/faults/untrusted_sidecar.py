"""An untrusted sidecar: it listens at the address of a pod and sends whatever a test wants."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from rightpool.cluster.errors import Conflict
from rightpool.cluster.resources import PODS
from rightpool.contract import SIDECAR_PORT
from tests.integration.faults.fleet import Tenant
from tests.patience import PATIENCE, eventually

Behavior = Callable[[socket.socket, threading.Event], None]


def says(body: bytes, head: bytes = b"HTTP/1.0 200 OK\r\n\r\n") -> Behavior:
    """The same answer to every request."""

    def behave(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(head + body)

    return behave


def pours(chunk: bytes) -> Behavior:
    """An answer that never ends."""

    def behave(connection: socket.socket, stopped: threading.Event) -> None:
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        while not stopped.is_set():
            connection.sendall(chunk)

    return behave


def drips(connection: socket.socket, stopped: threading.Event) -> None:
    """A byte every half second, so that no single read times out."""
    connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
    while not stopped.wait(0.5):
        connection.sendall(b"#")


class UntrustedSidecar:
    """requests: the first data of each connection."""

    def __init__(self, address: str, behave: Behavior) -> None:
        self.address = address
        self.requests: list[str] = []
        self._behave = behave
        self._stopped = threading.Event()
        self._listener = socket.create_server((address, SIDECAR_PORT))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while not self._stopped.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(PATIENCE)
            self.requests.append(connection.recv(65536).decode("latin-1"))
            self._behave(connection, self._stopped)

    def close(self) -> None:
        self._stopped.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def set_address(tenant: Tenant, pod: str, address: str) -> None:
    """Set the address in the status of a running pod."""

    def moved() -> bool:
        body = tenant.client.get(PODS, pod, tenant.namespace)
        if body["status"].get("phase") != "Running":
            return False
        body["status"].update(podIP=address, podIPs=[{"ip": address}])
        path = PODS.path(tenant.namespace, pod, "status")
        try:
            tenant.client.request("PUT", path, body={**body, "apiVersion": "v1", "kind": "Pod"})
        except Conflict:
            return False
        return True

    eventually(moved, f"{pod} is at {address}")
