"""The one HTTP client for pods: untrusted servers, so everything about an exchange is bounded.

One request a connection, without redirects, proxies, cookies or compression. The deadline holds for the exchange as a
whole, however slowly the bytes arrive: HTTP libraries bound only the wait between two reads, and a pod may send one
byte a second.
"""

import http.client
import io
import socket
import time
from collections.abc import Callable, Container, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

CONNECTIONS: Final = 16
_LARGEST_HEAD: Final = 16 * 2**10  # bytes
_EXCERPT: Final = 200  # characters of a refusal that are repeated in messages

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RequestFailed(Exception):
    """There is no answer that can be used. The message says why."""


@dataclass(frozen=True, slots=True)
class PodRequest:
    """One request to one pod."""

    address: str
    """The pod's IP."""
    path: str
    """With the query."""
    method: str = "GET"
    """Of HTTP, in capitals."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Beside those that HTTP needs."""
    body: bytes | None = None
    """None for an empty one."""
    accepted: Container[int] = (200,)
    """The status codes that are an answer; any other is a failure."""
    port: int | None = None
    """None for that of the client."""


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[K, V]):
    """What became of several requests. Each is in one of the three."""

    answers: dict[K, V]
    """What was read of each body."""
    failures: dict[K, str]
    """Why there is no answer."""
    unfinished: list[K]
    """Those that the time for all did not suffice for."""


class PodClient:
    """Sends requests to pods, a bounded number at a time. Used by one thread at a time."""

    def __init__(self, name: str, *, port: int, seconds: float, largest_body: int) -> None:
        """name: of its threads. seconds: for one exchange. largest_body: of an answer, bytes."""
        self._port = port
        self._seconds = seconds
        self._largest_body = largest_body
        self._threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix=name)

    def close(self) -> None:
        """Returns at once. Exchanges under way end by their deadline, and no other begins."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def ask(self, requests: Mapping[K, PodRequest], read: Callable[[str], V], seconds: float) -> Outcomes[K, V]:
        """Send all, in their order, and wait for at most so many seconds.

        read: makes a value of the text of an answer, in the thread of the request; may raise RequestFailed.
        """
        sent: dict[Future[V], K] = {
            self._threads.submit(self._read, request, read): key for key, request in requests.items()
        }
        done, late = wait(sent, timeout=seconds)
        for future in late:
            future.cancel()
        outcomes: Outcomes[K, V] = Outcomes({}, {}, [sent[future] for future in late])
        for future in done:
            try:
                outcomes.answers[sent[future]] = future.result()
            except RequestFailed as error:
                outcomes.failures[sent[future]] = str(error)
        return outcomes

    def _read(self, request: PodRequest, read: Callable[[str], V]) -> V:
        return read(exchange(request, request.port or self._port, self._seconds, self._largest_body))


class Incoming(io.RawIOBase):
    """The bytes that a connection brings, until a deadline. Stands for the socket in HTTPResponse."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        super().__init__()
        self.limit = _LARGEST_HEAD
        """How many more bytes are read. At first it is the head that is bounded."""
        self._connection = connection
        self._deadline = deadline

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self.limit <= 0:
            raise http.client.HTTPException("the head is too large")
        self._connection.settimeout(_left(self._deadline))
        count = self._connection.recv_into(buffer, min(len(buffer), self.limit))
        self.limit -= count
        return count


def exchange(request: PodRequest, port: int, seconds: float, largest_body: int) -> str:
    """The text that a pod answers. Raises RequestFailed."""
    deadline = time.monotonic() + seconds
    connection = http.client.HTTPConnection(request.address, port, timeout=seconds)
    try:
        connection.connect()
        connection.sock.settimeout(_left(deadline))
        headers = {"Connection": "close", **request.headers}
        connection.request(request.method, request.path, request.body, headers)
        return answer_of(Incoming(connection.sock, deadline), request.accepted, largest_body)
    except TimeoutError:
        raise RequestFailed(f"no answer within {seconds:g} seconds") from None
    except http.client.RemoteDisconnected:
        raise RequestFailed("it closed the connection without an answer") from None
    except http.client.HTTPException:
        raise RequestFailed("the answer is not HTTP") from None
    except (OSError, UnicodeError, OverflowError) as error:
        raise RequestFailed(str(error) or type(error).__name__) from None
    finally:
        connection.close()


def answer_of(incoming: Incoming, accepted: Container[int], largest_body: int) -> str:
    """The text of the answer that a connection brings. Raises RequestFailed, HTTPException or OSError."""
    with http.client.HTTPResponse(incoming) as response:  # type: ignore[arg-type]  # of a socket it uses makefile alone
        response.begin()
        incoming.limit = largest_body + 1 + (response.chunked and largest_body + _LARGEST_HEAD)
        if response.status not in accepted:
            excerpt = response.read(_EXCERPT).decode("utf-8", "replace").strip()
            raise RequestFailed(f"HTTP {response.status} {response.reason[:_EXCERPT]!r}: {excerpt!r}")
        body = _body(response, largest_body)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise RequestFailed("the answer is not text") from None


def _body(response: http.client.HTTPResponse, largest: int) -> bytes:
    # Plain was asked for. Servers may send their answers in chunks.
    transfer = "transfer-encoding" in response.headers and not response.chunked
    if transfer or response.headers.get("content-encoding", "identity") != "identity":
        raise RequestFailed("the answer is encoded")
    expected = response.length  # None where the end of the connection ends the body, or a chunk does
    try:
        body = b"" if expected is not None and expected > largest else response.read(largest + 1)
    except http.client.IncompleteRead:
        raise RequestFailed("the answer was cut off") from None
    if len(body) > largest or (expected or 0) > largest:
        raise RequestFailed(f"the answer is larger than {largest} bytes")
    if expected is not None and len(body) < expected:
        raise RequestFailed("the answer was cut off")
    return body


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
