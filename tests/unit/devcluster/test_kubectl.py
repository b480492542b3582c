"""kubectl is asked again where its request was never sent, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from devcluster.kubectl import Kubectl
from devcluster.spec import DevclusterError

UNSENT = "Unable to connect to the server: net/http: TLS handshake timeout"
PROGRAM = """#!/bin/sh
echo "$@" >> {folder}/asked
[ $(wc -l < {folder}/asked) -gt {failures} ] && {{ cat; exit 0; }}
echo '{message}' >&2
exit 1
"""


def kubectl(folder: Path, message: str, failures: int) -> Kubectl:
    """A program that fails so often with this message, and then says what it was told."""
    program = folder / "kubectl"
    program.write_text(PROGRAM.format(folder=folder, message=message, failures=failures))
    program.chmod(0o755)
    return Kubectl(folder / "kubeconfig", str(program))


def asked(folder: Path) -> int:
    return len((folder / "asked").read_text().splitlines())


@pytest.mark.parametrize("message", [UNSENT, "Unable to connect to the server: dial tcp 127.0.0.1:1: i/o timeout"])
def test_what_was_not_sent_is_sent_again(tmp_path: Path, message: str) -> None:
    assert kubectl(tmp_path, message, failures=3)("apply", "-f-", stdin="body") == "body"
    assert asked(tmp_path) == 4


@pytest.mark.parametrize(
    "message",
    [
        "Error from server (NotFound): pods one not found",
        "Error from server: error dialing backend: dial tcp 127.0.0.1:10250: i/o timeout",
        "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?",
    ],
)
def test_an_answer_is_not_asked_for_again(tmp_path: Path, message: str) -> None:
    with pytest.raises(DevclusterError, match="kubectl get pod one: "):
        kubectl(tmp_path, message, failures=1)("get", "pod", "one")
    assert asked(tmp_path) == 1


def test_it_is_not_asked_for_ever(tmp_path: Path) -> None:
    with pytest.raises(DevclusterError, match="TLS handshake timeout"):
        kubectl(tmp_path, UNSENT, failures=1000)("get", "pods")
    assert asked(tmp_path) == 10
