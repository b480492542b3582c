"""The CRDs in a real API server, and its answers to objects."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from rightpool.api.resources import RESOURCES
from rightpool.contract import GROUP, VERSION
from tests.patience import eventually

CRDS = Path(__file__).parents[3] / "crds"

Object = dict[str, Any]


@dataclass(frozen=True)
class Refusal:
    """One validation error of the API server: the field and the message."""

    field: str
    message: str


class Server:
    """The API server, for objects of the project's kinds."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api
        self._plurals = {resource.kind: (resource.plural, resource.namespaced) for resource in RESOURCES}

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        content: str = "application/json",
        accept: str = "application/json",
        **query: str,
    ) -> Object:
        """Send one request. Raises ApiException if the server rejects it."""
        request = self._api.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params={"Accept": accept, "Content-Type": content},
            body=json.dumps(body) if content.endswith("+yaml") else body,
            auth_settings=["BearerToken"],
        )
        response = self._api.call_api(*request)
        response.read()
        text = response.data.decode()
        if response.status >= 400:
            raise ApiException(status=response.status, reason=response.reason, body=text)
        return dict(json.loads(text))

    def path(self, obj: Object, namespace: str, *, name: bool = True) -> str:
        plural, namespaced = self._plurals[obj["kind"]]
        where = f"namespaces/{namespace}/" if namespaced else ""
        tail = f"/{obj['metadata']['name']}" if name else ""
        return f"/apis/{GROUP}/{VERSION}/{where}{plural}{tail}"

    def create(self, obj: Object, namespace: str = "default", *, dry_run: bool = False) -> Object:
        """Create an object as kubectl does: unknown fields are rejected."""
        query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
        return self.call("POST", self.path(obj, namespace, name=False), obj, **query)

    def patch(self, obj: Object, namespace: str, body: Object, subresource: str = "") -> Object:
        path = self.path(obj, namespace) + (f"/{subresource}" if subresource else "")
        return self.call("PATCH", path, body, "application/merge-patch+json", fieldValidation="Strict")

    def apply_status(self, obj: Object, namespace: str, manager: str, status: Object) -> Object:
        """Server-side apply of a status."""
        body = {key: obj[key] for key in ("apiVersion", "kind")} | {"status": status}
        path = self.path(obj, namespace) + "/status"
        return self.call("PATCH", path, body, "application/apply-patch+yaml", fieldManager=manager, force="true")

    def refusals(self, request: Callable[[], object]) -> list[Refusal]:
        """What the server says against the request. Empty: it was admitted, or is there already, which the server
        says only of what it would admit."""
        try:
            request()
        except ApiException as refused:
            status = json.loads(refused.body)
            if status["reason"] == "AlreadyExists":
                return []
            causes = status.get("details", {}).get("causes", [])
            if not causes:
                return [Refusal("", status["message"])]
            return [Refusal(cause.get("field", ""), cause["message"]) for cause in causes]
        return []


@pytest.fixture(scope="session")
def server(kubeconfig: Path) -> Iterator[Server]:
    """The API server with the CRDs of this checkout."""
    api = config.new_client_from_config(str(kubeconfig))
    extensions = client.ApiextensionsV1Api(api)
    for path in sorted(CRDS.glob("*.yaml")):
        _install(extensions, yaml.safe_load(path.read_text(encoding="utf-8")))
    yield Server(api)
    api.close()


def _install(extensions: client.ApiextensionsV1Api, crd: Object) -> None:
    name = crd["metadata"]["name"]
    before = _generation(extensions, name)
    extensions.patch_custom_resource_definition(
        name, crd, field_manager="tests", force=True, _content_type="application/apply-patch+yaml"
    )
    eventually(lambda: _established(extensions, name), f"{name} is established")
    if before is not None and _generation(extensions, name) != before:
        # The server uses the old schema until it has seen the new one. Where it is slow, so are its answers.
        for _ in range(20):
            _generation(extensions, name)
            time.sleep(0.1)


def _generation(extensions: client.ApiextensionsV1Api, name: str) -> int | None:
    try:
        return int(extensions.read_custom_resource_definition(name).metadata.generation)
    except ApiException as error:
        if error.status == 404:
            return None
        raise


def _established(extensions: client.ApiextensionsV1Api, name: str) -> bool:
    conditions = extensions.read_custom_resource_definition(name).status.conditions or ()
    return any(condition.type == "Established" and condition.status == "True" for condition in conditions)
