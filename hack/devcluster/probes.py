"""Probes of running components: whether they answer, not only whether the process exists.

A stopped or deadlocked process has a pid too. Every probe has a timeout of a second or two, so that `status` never
hangs on a broken cluster.
"""

import secrets
import socket
import ssl
import struct
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

SECONDS = 2.0


def http(url: str) -> Callable[[], bool]:
    """Whether there is a 2xx answer. Certificates are not verified: health endpoints carry no secrets."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))

    def probe() -> bool:
        try:
            with opener.open(url, timeout=SECONDS) as response:
                return 200 <= int(response.status) < 300
        except (OSError, urllib.error.URLError, ValueError):
            return False

    return probe


def tcp(host: str, port: int) -> Callable[[], bool]:
    """Whether a connection is accepted."""

    def probe() -> bool:
        try:
            with socket.create_connection((host, port), timeout=SECONDS):
                return True
        except OSError:
            return False

    return probe


def unix_socket(path: Path) -> Callable[[], bool]:
    def probe() -> bool:
        return listens(path)

    return probe


def listens(path: Path) -> bool:
    """Whether a process accepts on this socket. After a crash the file may exist without one."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(SECONDS)
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True


def dns(server: str, name: str) -> Callable[[], bool]:
    """Whether the DNS server has an address for the name."""

    def probe() -> bool:
        query_id = secrets.token_bytes(2)
        question = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
        query = query_id + struct.pack(">5H", 0x0100, 1, 0, 0, 0) + question + struct.pack(">2H", 1, 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(SECONDS)
            try:
                client.sendto(query, (server, 53))
                answer = client.recv(1500)
            except OSError:
                return False
        if len(answer) < 12 or answer[:2] != query_id:
            return False
        flags, _, answers = struct.unpack(">3H", answer[2:8])
        return bool(flags & 0x000F == 0 and answers > 0)

    return probe
