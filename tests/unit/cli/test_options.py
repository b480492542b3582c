"""Values of options that make no sense: every number has its range, and the message names the option and the range."""

from __future__ import annotations

import pytest

from rightpool.cli.connection import CliError
from rightpool.cli.jobs import job_key
from rightpool.cli.main import main
from rightpool.planning.jobs.job import JobKey

NO_NUMBERS = ("", "-1", "x", "1.5e", "nan", "inf", "-inf", "9" * 5000, "\u00b2", "1 0")
WHOLE = {
    ("calibrate", "a100", "--timeout"): (1, 86_400),
    ("calibrate", "a100", "--chips"): (1, 256),
    ("trace", "job", "--rank"): (0, 1_000_000),
    ("ui", "--port"): (0, 65_535),
}
SECONDS = {
    ("top", "--watch"): (1, 3600),
    ("explain", "job", "--watch"): (1, 3600),
    ("profile", "job", "--watch"): (1, 3600),
    ("pools", "--watch"): (1, 3600),
    ("operator", "--interval"): (0.2, 300),
    ("explain", "job", "--p99"): (0.0001, 3600),
}


def refused(words: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*words[:-1], f"{words[-1]}={text}"])
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("words", [*WHOLE, *SECONDS], ids=" ".join)
def test_a_number_out_of_its_range_is_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    first, last = (WHOLE | SECONDS)[words]
    outside = (str(first / 2), str(first - 1), str(last + 1), *(("1.5",) if words in WHOLE else ()))
    for text in (*NO_NUMBERS, *outside):
        message = refused(words, text, capsys)
        assert words[-1] in message and f"from {first} to {last}" in message, text


def test_a_rate_of_requests_out_of_its_range_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for text in (*NO_NUMBERS, "0", "1e10"):
        message = refused(("explain", "job", "--requests-per-second"), text, capsys)
        assert "--requests-per-second" in message and "from 0.001 to 1e+09" in message, text


def test_days_out_of_their_range_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for text in (*NO_NUMBERS, "0d", "63d", "30", "1.5d", "-1d"):
        message = refused(("report", "--since"), text, capsys)
        assert "--since" in message and "from 1d to 62d" in message, text


def test_an_option_of_the_operator_is_named_as_it_was_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RIGHTPOOL_API_QPS", "inf")
    assert main(["operator", "--prometheus-url", "prometheus:9090"]) == 2
    option, variable = sorted(capsys.readouterr().err.splitlines())
    assert "--prometheus-url: " in option and "http://" in option
    assert variable.startswith("rightpool operator: RIGHTPOOL_API_QPS: ")


@pytest.mark.parametrize("command", ["pools", "explain", "trace job", "calibrate a100", "report", "top"])
def test_an_operators_namespace_that_is_none_is_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty one would be all namespaces, those of tenants included."""
    for text in ("", " ", "*", "a/b", "../a", "A", "a" * 64):
        message = refused((*command.split(), "--operator-namespace"), text, capsys)
        assert "--operator-namespace" in message and "is not the name of a namespace" in message


def test_a_job_is_looked_for_in_what_may_be_a_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty one is what a script has that has lost it."""
    for text in ("", "*", "../a", "A"):
        message = refused(("top", "--namespace"), text, capsys)
        assert "-n/--namespace" in message and "is not the name of a namespace" in message


@pytest.mark.parametrize(
    "text", ["", "/", "pj/", "vision/", "a/b/c", "pj/vision/a", "../a", "A", "a b", "-a", "a.", "%2e%2e", "a" * 254]
)
def test_a_job_without_a_name(text: str) -> None:
    with pytest.raises(CliError, match="is not the name of a ProfiledJob"):
        job_key(text, "vision")


@pytest.mark.parametrize("text", ["pj/edit", "profiledjob/edit", "profiledjobs.rightpool.dev/edit", "edit"])
def test_a_job_is_named_as_kubectl_names_it(text: str) -> None:
    assert job_key(text, "vision") == JobKey("vision", "edit")
    assert job_key("language/edit", "vision") == JobKey("language", "edit")
