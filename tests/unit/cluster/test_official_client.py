"""What of the official client is loaded, and that the rest is there when it is needed."""

import subprocess
import sys

import pytest

_LOAD = "import sys, rightpool.cluster.client\n"


def ran(code: str) -> str:
    """In a process of its own, since this one has loaded all of it for other tests."""
    done = subprocess.run([sys.executable, "-c", _LOAD + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", ["requests", "requests_oauthlib", "websocket", "kubernetes.dynamic.client"])
def test_what_no_request_needs_is_not_loaded(name: str) -> None:
    assert ran(f"print({name!r} in sys.modules)") == "False"


@pytest.mark.parametrize(
    "code",
    [
        "from kubernetes.stream.ws_client import create_websocket; print(callable(create_websocket))",
        "import kubernetes; print(callable(kubernetes.dynamic.DynamicClient))",
        "from kubernetes.watch import Watch; print(callable(Watch))",
        "import requests_oauthlib; print(isinstance(requests_oauthlib.OAuth2Session, type))",
    ],
)
def test_it_is_loaded_when_it_is_asked_for(code: str) -> None:
    assert ran(code) == "True"


def test_a_token_of_openid_is_refreshed_by_the_library() -> None:
    """As the client does where a kubeconfig's user has the auth-provider oidc."""
    assert (
        ran(
            "from kubernetes.config import kube_config as config\n"
            "session = config.OAuth2Session(client_id='c', token='t', auto_refresh_url='https://issuer.example/token')\n"
            "error = config.oauthlib.oauth2.rfc6749.errors.InvalidClientIdError\n"
            "print(type(session).__module__, session.client_id, issubclass(error, Exception))"
        )
        == "requests_oauthlib.oauth2_session c True"
    )
