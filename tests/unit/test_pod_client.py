"""Requests to pods that are slow, large, wrong or gone."""

import socket
import threading
import time

import pytest

from rightpool.pod_client import CONNECTIONS, PodClient, PodRequest, RequestFailed, exchange
from tests.unit.telemetry.pages import Page, free_port, raw_server, serving

LARGEST = 2**20
REQUEST = PodRequest("127.0.0.1", "/metrics")


def get(port: int, seconds: float = 60.0) -> str:
    return exchange(REQUEST, port, seconds, LARGEST)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def test_a_page() -> None:
    with serving(Page(lambda path: f"{path} ü\n")) as url:
        assert get(port_of(url)) == "/metrics ü\n"


def test_connection_refused() -> None:
    with pytest.raises(RequestFailed, match="refused"):
        get(free_port())


@pytest.mark.parametrize("status", [204, 301, 404, 500])
def test_other_answers_are_no_page(status: int) -> None:
    with serving(Page(lambda _: (status, b"rightpool_samples_total 1\n"))) as url:
        with pytest.raises(RequestFailed, match=str(status)):
            get(port_of(url))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "without an answer"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\nshort\n", "cut off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n\x1f\x8b", "encoded"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\na", "cut off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"8000\r\n" + b"x" * 32768, "cut off|larger than"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b", "encoded"),
        (b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe", "not text"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20000 + b"\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 101 + b"\r\n", "not HTTP"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 2000, "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000000\r\n\r\n", "larger than"),
        (b"HTTP/1.1 500 No\r\nContent-Length: 1000000000000000\r\n\r\nbad\x1b[0m", r"HTTP 500 'No': 'bad\\x1b\[0m'"),
    ],
)
def test_answers_that_can_not_be_used(answer: bytes, words: str) -> None:
    def talk(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(answer)

    with raw_server(talk) as port, pytest.raises(RequestFailed, match=words):
        get(port)


def test_an_answer_in_chunks() -> None:
    def talk(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na \r\n2\r\n1\n\r\n0\r\n\r\n")

    with raw_server(talk) as port:
        assert get(port) == "a 1\n"


def test_a_page_without_end() -> None:
    def talk(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        while not over.is_set():
            connection.sendall(b"rightpool_samples_total 1\n" * 1000)

    with raw_server(talk) as port, pytest.raises(RequestFailed, match=str(LARGEST)):
        get(port)


@pytest.mark.parametrize("head", [b"", b"HTTP/1.0 200 OK\r\n\r\n"], ids=["head", "body"])
def test_slow_bytes_do_not_extend_the_deadline(head: bytes) -> None:
    def talk(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(head)
        while not over.wait(0.05):
            connection.sendall(b"x")

    started = time.monotonic()
    with raw_server(talk) as port, pytest.raises(RequestFailed, match=r"within 0\.5 seconds"):
        get(port, 0.5)
    assert time.monotonic() - started < 60


def test_the_environments_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    with serving(Page(lambda _: "direct\n")) as url:
        assert get(port_of(url)) == "direct\n"


def test_the_request_line_and_headers() -> None:
    heard: list[bytes] = []

    def talk(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}")

    def listen(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            text = b""
            while not text.endswith(b"{id}"):
                text += connection.recv(65536)
            heard.append(text)
            talk(connection, threading.Event())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=listen, args=(listener,), daemon=True)
        thread.start()
        request = PodRequest(
            "127.0.0.1", "/checkpoint", "POST", {"Authorization": "Bearer x"}, b"{id}", accepted=(202,)
        )
        assert exchange(request, listener.getsockname()[1], 60.0, LARGEST) == "{}"
        thread.join(60)
    lines = heard[0].decode().split("\r\n")
    assert lines[0] == "POST /checkpoint HTTP/1.1"
    assert {"Connection: close", "Authorization: Bearer x", "Content-Length: 4"} <= set(lines)


def test_each_request_has_its_own_outcome() -> None:
    client = PodClient("test", port=free_port(), seconds=60.0, largest_body=LARGEST)
    with serving(Page(lambda path: f"{path}\n"), "127.0.0.2", client._port):
        requests = {address: PodRequest(address, "/x") for address in ("127.0.0.2", "127.0.0.3")}
        outcomes = client.ask(requests, len, 60.0)
    client.close()
    assert outcomes.answers == {"127.0.0.2": 3}
    assert outcomes.failures.keys() == {"127.0.0.3"}
    assert outcomes.unfinished == []


def test_connections_are_bounded() -> None:
    together, most, guard = 0, 0, threading.Lock()
    full = threading.Barrier(CONNECTIONS)

    def answer(_: str) -> str:
        nonlocal together, most
        with guard:
            together += 1
            most = max(most, together)
        full.wait(120)
        with guard:
            together -= 1
        return ""

    client = PodClient("test", port=free_port(), seconds=120.0, largest_body=LARGEST)
    with serving(Page(answer), "127.0.0.1", client._port):
        outcomes = client.ask(dict.fromkeys(range(2 * CONNECTIONS), REQUEST), len, 120.0)
    client.close()
    assert len(outcomes.answers) == 2 * CONNECTIONS
    assert most == CONNECTIONS


def test_requests_after_the_deadline_are_not_sent() -> None:
    page = Page(lambda _: "")
    page.answer = lambda path: (path == "/first" and page.wait(120), "")[1]
    client = PodClient("test", port=free_port(), seconds=120.0, largest_body=LARGEST)
    with serving(page, "127.0.0.1", client._port):
        first = client.ask({number: PodRequest("127.0.0.1", "/first") for number in range(100)}, len, 0.0)
        page.closing.set()
        second = client.ask({number: PodRequest("127.0.0.1", "/second") for number in range(100)}, len, 120.0)
    client.close()
    assert len(first.unfinished) == 100
    assert len(second.answers) == 100
    assert page.asked.count("/first") <= CONNECTIONS
