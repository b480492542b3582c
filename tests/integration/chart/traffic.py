"""Real traffic between pods: who can open a connection to what."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from devcluster.kubectl import Kubectl

Object = dict[str, Any]
# Both are run by the Python of the project's images.
_LISTEN: Final = """
import socket, sys, time
kept = [socket.create_server(("", int(port))) for port in sys.argv[1:]]
print("listening", flush=True)
time.sleep(1e6)
"""
_CONNECT: Final = """
import json, socket, sys
for address, port in json.loads(sys.argv[1]):
    try:
        socket.create_connection((address, port), timeout=3).close()
        print("open")
    except OSError:
        print("closed")
"""


@dataclass(frozen=True)
class Place:
    """A pod that connections come from, or an address that they go to."""

    name: str
    address: str
    namespace: str = ""


@dataclass(frozen=True)
class Way:
    """A connection: from a pod to a TCP port."""

    source: Place
    target: Place
    port: int

    def __str__(self) -> str:
        return f"{self.source.name} to {self.target.name}:{self.port}"


def listener(image: str, *ports: int) -> Object:
    """A container that takes connections at these ports."""
    return {
        "name": "listener",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", _LISTEN, *map(str, ports)],
    }


def open_ways(kubectl: Kubectl, ways: Iterable[Way]) -> set[str]:
    """Those over which a connection was made. One that is refused and one that nobody answers are the same here."""
    of_source: dict[Place, list[Way]] = {}
    for way in ways:
        of_source.setdefault(way.source, []).append(way)
    found: set[str] = set()
    for source, its in of_source.items():
        asked = json.dumps([(way.target.address, way.port) for way in its])
        where = (source.name, f"--namespace={source.namespace}")
        answers = kubectl("exec", *where, "--", "python3", "-c", _CONNECT, asked).split()
        found |= {str(way) for way, answer in zip(its, answers, strict=True) if answer == "open"}
    return found


def place(pod: Mapping[str, Any]) -> Place:
    return Place(pod["metadata"]["name"], pod["status"]["podIP"], pod["metadata"]["namespace"])
