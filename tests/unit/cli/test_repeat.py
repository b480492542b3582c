"""--watch: the same again, until it is interrupted."""

from __future__ import annotations

import argparse
from typing import Any, cast

import pytest

from rightpool.cli import explain, pools, top
from rightpool.cli.connection import Connection
from rightpool.cli.repeat import WATCH_SECONDS, repeated

NOWHERE = cast(Connection, None)


@pytest.mark.parametrize("command", [top, explain, pools], ids=lambda command: command.__name__)
@pytest.mark.parametrize(
    ("words", "seconds"), [([], None), (["--watch"], WATCH_SECONDS), (["-w", "30"], 30.0), (["--watch=1"], 1.0)]
)
def test_the_option(command: Any, words: list[str], seconds: float | None) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert parser.parse_args(words).watch == seconds


@pytest.mark.parametrize("text", ["0", "0.5", "3601", "nan", "often"])
def test_what_is_no_number_of_seconds(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    top.add_arguments(parser)
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--watch", text])
    assert ended.value.code == 2
    assert f"--watch: {text} is not a number of seconds from 1 to 3600" in capsys.readouterr().err


def test_it_is_shown_until_it_is_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repeated(lambda _: print("seen"), 30.0, pause)(NOWHERE)
    assert capsys.readouterr().out == "seen\n" * 3, "without colours and control codes where nobody looks"
    assert pauses == [30.0] * 3


def test_without_the_option_it_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    repeated(lambda _: print("seen"), None)(NOWHERE)
    assert capsys.readouterr().out == "seen\n"
