"""The choice of cluster and namespace, and messages for errors."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import yaml

from rightpool.cli.connection import CliError, Connection, add_connection_arguments, carry_out, connected
from rightpool.cluster.errors import ClusterError, Forbidden, NotFound, Unavailable
from rightpool.cluster.kubeconfig import read_kubeconfig


def write(path: Path, *contexts: tuple[str, str], current: str | None = None) -> Path:
    """`contexts`: name and namespace. Each has its own cluster, on a closed port."""
    config: dict[str, Any] = {
        "clusters": [{"name": name, "cluster": {"server": f"http://{name}.invalid:1"}} for name, _ in contexts],
        "users": [{"name": name, "user": {"token": "t"}} for name, _ in contexts],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, **({"namespace": space} if space else {})}}
            for name, space in contexts
        ],
        "current-context": current,
    }
    path.write_text(yaml.safe_dump(config))
    return path


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_connection_arguments(parser)
    return parser.parse_args(words)


def host_of(connection: Connection) -> str:
    return str(connection.client._api.configuration.host)


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def test_the_current_context_and_its_namespace(tmp_path: Path) -> None:
    path = write(tmp_path / "config", ("one", ""), ("two", "research"), current="two")
    with connected(options("--kubeconfig", str(path))) as connection:
        assert (host_of(connection), connection.namespace) == ("http://two.invalid:1", "research")


@pytest.mark.parametrize("text", ["- a", "abc", "contexts: [a]", "contexts: 1", "contexts: [{name: a, context: b}]"])
def test_yaml_that_is_no_kubeconfig(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with (
        pytest.raises(CliError, match="config is not a kubeconfig: it has other fields"),
        connected(options("--kubeconfig", str(path))),
    ):
        pass


@pytest.mark.parametrize("hint", ["", "see the cloud's page\n"])
def test_a_program_for_credentials_that_is_not_installed(tmp_path: Path, hint: str) -> None:
    """The client library would log that, and ask the cluster without any."""
    path = write(tmp_path / "config", ("one", ""), ("two", ""), current="one")
    body = yaml.safe_load(path.read_text())
    body["users"][0]["user"] = {"exec": {"command": "cloud-auth", "installHint": hint}}
    body["users"][1]["user"] = {"exec": {"command": "./cloud-auth"}}
    body["users"].append({"name": "three", "user": {"exec": {"args": ["a"]}}})
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "cloud-auth").touch(mode=0o755)
    env = [{"name": "PATH", "value": str(tmp_path / "own")}]
    body["users"].append({"name": "four", "user": {"exec": {"command": "cloud-auth", "env": env}}})
    for name, kind in (("five", "token"), ("six", "tokenFile")):
        body["users"].append({"name": name, "user": {kind: "t", "exec": {"command": "cloud-auth"}}})
    names = ("three", "four", "five", "six")
    body["contexts"] += [{"name": name, "context": {"cluster": "one", "user": name}} for name in names]
    path.write_text(yaml.safe_dump(body))
    advice = r": install it \(see the cloud's page\)$" if hint else ": install it$"
    with (
        pytest.raises(CliError, match=f"context one gets its credentials from cloud-auth{advice}"),
        connected(options("--kubeconfig", str(path))),
    ):
        pass
    programs = read_kubeconfig([path]).programs
    assert not programs["two"].missing, "it is beside the kubeconfig"
    assert not programs["four"].missing, "the kubeconfig has a PATH for it"
    assert programs.keys() == {"one", "two", "four"}, "who has a token asks no program"


def test_another_context_and_namespace(tmp_path: Path) -> None:
    path = write(tmp_path / "config", ("one", ""), ("two", "research"), current="two")
    with connected(options("--kubeconfig", str(path), "--context", "one")) as connection:
        assert (host_of(connection), connection.namespace) == ("http://one.invalid:1", "default")
    with connected(options("--kubeconfig", str(path), "-n", "mine")) as connection:
        assert connection.namespace == "mine"


def test_several_files_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(tmp_path / "a", ("one", "first"), current="one")
    second = write(tmp_path / "b", ("one", "second"), ("two", "other"), current="two")
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'missing'}:{second}")
    with connected(options()) as connection:
        assert (host_of(connection), connection.namespace) == ("http://one.invalid:1", "first")
    with connected(options("--context", "two")) as connection:
        assert connection.namespace == "other"


def test_paths_in_a_kubeconfig_are_relative_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(tmp_path / "a", ("one", ""), current="one")
    (tmp_path / "other").mkdir()
    second = write(tmp_path / "other" / "b", ("two", ""))
    config = yaml.safe_load(second.read_text())
    config["clusters"][0]["cluster"] = {"server": "https://two.invalid", "certificate-authority": "ca.crt"}
    second.write_text(yaml.safe_dump(config))
    authority = tmp_path / "other" / "ca.crt"
    authority.write_text("")
    seen: list[object] = []
    monkeypatch.setattr("kubernetes.client.ApiClient", lambda configuration: seen.append(configuration) or Nothing())
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}")
    with connected(options("--context", "two")):
        pass
    assert [str(configuration.ssl_ca_cert) for configuration in seen] == [str(authority)]  # type: ignore[attr-defined]


class Nothing:
    """In place of the library's client, which would read the certificate."""

    def close(self) -> None: ...


def test_the_default_path(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", ("home", ""), current="home")
    with connected(options()) as connection:
        assert host_of(connection) == "http://home.invalid:1"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ((), "there is no kubeconfig: name one by --kubeconfig"),
        (("--kubeconfig", "/nowhere/config"), "there is no kubeconfig /nowhere/config"),
    ],
)
def test_no_kubeconfig(words: tuple[str, ...], hint: str) -> None:
    with pytest.raises(CliError, match=hint), connected(options(*words)):
        pass


def test_a_variable_that_names_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    with pytest.raises(CliError, match=r"\$KUBECONFIG is /nowhere/config"), connected(options()):
        pass


def test_a_misspelt_context_gets_a_suggestion(tmp_path: Path) -> None:
    path = write(tmp_path / "config", ("production", ""), ("staging", ""), current="staging")
    with pytest.raises(CliError, match="did you mean production"):
        with connected(options("--kubeconfig", str(path), "--context", "prodution")):
            pass
    with pytest.raises(CliError, match="there are: production, staging"):
        with connected(options("--kubeconfig", str(path), "--context", "zzz")):
            pass


@pytest.mark.parametrize("text", ["a: [", "- 1", "", "contexts: []"])
def test_a_broken_kubeconfig_is_one_sentence(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    assert carry_out(options("--kubeconfig", str(path)), "top", lambda connection: None) == 1
    error = capsys.readouterr().err
    assert error.startswith("rightpool top: ") and "Traceback" not in error


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (NotFound("the server could not find the requested resource"), "not installed in this cluster"),
        (Forbidden('profiledjobs is forbidden: User "dev"'), "does not allow it: profiledjobs is forbidden"),
        (Unavailable("ConnectionRefused"), "does not answer: ConnectionRefused"),
        (CliError("there is no such thing"), "there is no such thing"),
    ],
)
def test_errors_of_the_cluster_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], problem: ClusterError | CliError, words: str
) -> None:
    path = write(tmp_path / "config", ("one", ""), current="one")

    def work(connection: Connection) -> None:
        raise problem

    assert carry_out(options("--kubeconfig", str(path)), "explain", work) == 1
    assert words in capsys.readouterr().err


def test_an_unreachable_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rightpool.cli.top import add_arguments, run

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    path = tmp_path / "config"
    write(path, ("one", ""), current="one")
    path.write_text(path.read_text().replace("one.invalid:1", "127.0.0.1:1"))
    assert run(parser.parse_args(["--kubeconfig", str(path)])) == 1
    error = capsys.readouterr().err
    assert error.startswith("rightpool top: the cluster does not answer: ") and "127.0.0.1:1: " in error
    assert "Connection refused" in error and "HTTPConnection" not in error and "MaxRetryError" not in error
