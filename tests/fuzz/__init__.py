"""Fuzzing of everything that a tenant, or any client on the pod network, can send. Targets by name."""

from collections.abc import Callable, Mapping
from typing import Final

from tests.fuzz.datagrams import Datagrams
from tests.fuzz.pages import Pages
from tests.fuzz.requests import Requests
from tests.fuzz.target import Target
from tests.fuzz.traces import Traces

TARGETS: Final[Mapping[str, Callable[[], Target]]] = {
    target.name: target for target in (Datagrams, Requests, Pages, Traces)
}
