"""Fetching from pods that are slow, large, wrong or gone."""

import socket
import threading
import time

import pytest

from rightpool.telemetry.page_fetch import MAX_PAGE, FetchFailed, fetch
from tests.unit.telemetry.pages import Page, free_port, raw_server, serving


def get(port: int, seconds: float = 60.0) -> str:
    return fetch("127.0.0.1", port, "/metrics", seconds)


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def test_a_page() -> None:
    with serving(Page(lambda path: f"{path} ü\n")) as url:
        assert get(port_of(url)) == "/metrics ü\n"


def test_nobody_there() -> None:
    with pytest.raises(FetchFailed, match="refused"):
        get(free_port())


@pytest.mark.parametrize("status", [204, 301, 404, 500])
def test_other_answers_are_no_page(status: int) -> None:
    with serving(Page(lambda _: (status, b"rightpool_samples_total 1\n"))) as url:
        with pytest.raises(FetchFailed, match=str(status)):
            get(port_of(url))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "not HTTP"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\nshort\n", "cut off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", "encoded"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b", "encoded"),
        (b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe", "not text"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20000 + b"\r\n\r\n", "not HTTP"),
    ],
)
def test_answers_that_are_none(answer: bytes, words: str) -> None:
    def talk(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(answer)

    with raw_server(talk) as port, pytest.raises(FetchFailed, match=words):
        get(port)


def test_a_page_without_end() -> None:
    def talk(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        while not over.is_set():
            connection.sendall(b"rightpool_samples_total 1\n" * 1000)

    with raw_server(talk) as port, pytest.raises(FetchFailed, match=str(MAX_PAGE)):
        get(port)


@pytest.mark.parametrize("head", [b"", b"HTTP/1.0 200 OK\r\n\r\n"], ids=["head", "body"])
def test_bytes_that_drip_do_not_outlive_the_deadline(head: bytes) -> None:
    def talk(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(head)
        while not over.wait(0.05):
            connection.sendall(b"x")

    started = time.monotonic()
    with raw_server(talk) as port, pytest.raises(FetchFailed, match=r"within 0\.5 seconds"):
        get(port, 0.5)
    assert time.monotonic() - started < 60
