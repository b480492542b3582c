"""A sidecar that does not mean well: listens where a pod says that it is, and answers what a test makes it answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from rightpool.cluster.errors import Conflict
from rightpool.cluster.resources import PODS
from rightpool.contract import SIDECAR_PORT
from tests.integration.faults.fleet import Tenant
from tests.integration.runtime.harness import eventually

Behave = Callable[[socket.socket, threading.Event], None]


def says(body: bytes, head: bytes = b"HTTP/1.0 200 OK\r\n\r\n") -> Behave:
    """One answer, whatever is asked."""

    def behave(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(head + body)

    return behave


def pours(chunk: bytes) -> Behave:
    """An answer that never ends."""

    def behave(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        while not over.is_set():
            connection.sendall(chunk)

    return behave


def drips(connection: socket.socket, over: threading.Event) -> None:
    """A byte now and then: no wait between two of them is long."""
    connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
    while not over.wait(0.5):
        connection.sendall(b"#")


class Impostor:
    """asked: what it was sent, a text for each connection."""

    def __init__(self, address: str, behave: Behave) -> None:
        self.address = address
        self.asked: list[str] = []
        self._behave = behave
        self._over = threading.Event()
        self._listener = socket.create_server((address, SIDECAR_PORT))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(10)
            self.asked.append(connection.recv(65536).decode("latin-1"))
            self._behave(connection, self._over)

    def close(self) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def move(tenant: Tenant, pod: str, address: str) -> None:
    """Let a pod that runs say that it is at this address."""

    def moved() -> bool:
        body = tenant.client.get(PODS, pod, tenant.namespace)
        if body["status"].get("phase") != "Running":
            return False
        body["status"].update(podIP=address, podIPs=[{"ip": address}])
        path = PODS.path(tenant.namespace, pod, "status")
        try:
            tenant.client._call("PUT", path, body={**body, "apiVersion": "v1", "kind": "Pod"})
        except Conflict:
            return False
        return True

    eventually(moved, what=f"{pod} is at {address}")
