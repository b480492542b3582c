"""Fetching a page from a pod that need not mean well: one request, bounded in size and in time as a whole.

HTTP/1.0 on a bare socket: no redirects to elsewhere, no proxies, no cookies, no compression to unpack, no chunks, and
a deadline that holds however slowly the bytes drip. General HTTP clients bound only the wait between two bytes.
"""

import socket
import time
from typing import Final

MAX_PAGE: Final = 2**20
_MAX_HEAD: Final = 16 * 2**10


class FetchFailed(Exception):
    """There is no page. The message says why."""


def fetch(host: str, port: int, path: str, seconds: float) -> str:
    """The body of a 200 answer, as text."""
    deadline = time.monotonic() + seconds
    try:
        with socket.create_connection((host, port), timeout=seconds) as connection:
            name = f"[{host}]" if ":" in host else host
            request = f"GET {path} HTTP/1.0\r\nHost: {name}:{port}\r\nAccept: text/plain\r\nConnection: close\r\n\r\n"
            connection.settimeout(_left(deadline))
            connection.sendall(request.encode("ascii"))
            answer = _all(connection, deadline)
    except TimeoutError:
        raise FetchFailed(f"no answer within {seconds:g} seconds") from None
    except (OSError, UnicodeError, OverflowError) as error:
        raise FetchFailed(str(error) or type(error).__name__) from None
    return _body(answer)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _all(connection: socket.socket, deadline: float) -> bytes:
    answer = bytearray()
    while True:
        connection.settimeout(_left(deadline))
        chunk = connection.recv(65536)
        if not chunk:
            return bytes(answer)
        answer += chunk
        if len(answer) > MAX_PAGE + _MAX_HEAD:
            raise FetchFailed(f"the page is larger than {MAX_PAGE} bytes")


def _body(answer: bytes) -> str:
    head, separator, body = answer.partition(b"\r\n\r\n")
    if not separator or len(head) > _MAX_HEAD:
        raise FetchFailed("the answer is not HTTP")
    status, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = status.partition(" ")
    if not version.startswith("HTTP/1."):
        raise FetchFailed("the answer is not HTTP")
    if rest[:3] != "200":
        raise FetchFailed(f"the answer is {rest[:60].strip()!r}")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if "transfer-encoding" in headers or headers.get("content-encoding", "identity") != "identity":
        raise FetchFailed("the answer is encoded")
    if headers.get("content-length", str(len(body))) != str(len(body)):
        raise FetchFailed("the answer was cut off")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise FetchFailed("the page is not text") from None
