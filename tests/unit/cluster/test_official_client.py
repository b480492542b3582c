"""What of the official client is loaded, and that the rest is there when it is needed."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

# Loads the client once, and runs each text of its input in a child that begins there.
_HOST = """
import io, json, os, sys, traceback
from contextlib import redirect_stdout
import rightpool.cluster.client
for line in sys.stdin:
    if os.fork() == 0:
        printed, error = io.StringIO(), ""
        try:
            with redirect_stdout(printed):
                exec(json.loads(line), {})
        except BaseException:
            error = traceback.format_exc()
        print(json.dumps([printed.getvalue().strip(), error]), flush=True)
        os._exit(0)
    os.wait()
"""
Host = subprocess.Popen[str]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """A process of its own, since this one has loaded all of the library for other tests."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as it:
        yield it


def ran(host: Host, code: str) -> str:
    """What is printed by a process that has loaded our client and nothing more."""
    assert host.stdin is not None and host.stdout is not None
    host.stdin.write(json.dumps(code) + "\n")
    host.stdin.flush()
    printed, error = json.loads(host.stdout.readline())
    assert error == ""
    return str(printed)


@pytest.mark.parametrize("name", ["requests", "requests_oauthlib", "websocket", "kubernetes.dynamic.client"])
def test_what_no_request_needs_is_not_loaded(host: Host, name: str) -> None:
    assert ran(host, f"import sys; print({name!r} in sys.modules)") == "False"


@pytest.mark.parametrize(
    "code",
    [
        "from kubernetes.stream.ws_client import create_websocket; print(callable(create_websocket))",
        "import kubernetes; print(callable(kubernetes.dynamic.DynamicClient))",
        "from kubernetes.watch import Watch; print(callable(Watch))",
        "import requests_oauthlib; print(isinstance(requests_oauthlib.OAuth2Session, type))",
    ],
)
def test_it_is_loaded_when_it_is_asked_for(host: Host, code: str) -> None:
    assert ran(host, code) == "True"


def test_a_token_of_openid_is_refreshed_by_the_library(host: Host) -> None:
    """As the client does where a kubeconfig's user has the auth-provider oidc."""
    assert (
        ran(
            host,
            "from kubernetes.config import kube_config as config\n"
            "session = config.OAuth2Session(client_id='c', token='t', auto_refresh_url='https://issuer.example/token')\n"
            "error = config.oauthlib.oauth2.rfc6749.errors.InvalidClientIdError\n"
            "print(type(session).__module__, session.client_id, issubclass(error, Exception))",
        )
        == "requests_oauthlib.oauth2_session c True"
    )
