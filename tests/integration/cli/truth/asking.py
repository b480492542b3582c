"""How users ask: by the command line, by `kubectl get`, and by the page in the browser."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator
from kubernetes import config
from starlette.testclient import TestClient

from rightpool.cli.connection import Connection
from rightpool.cli.main import main
from rightpool.cli.ui.server import Pages, PictureSource, application
from rightpool.cluster.client import ClusterClient
from rightpool.contract import GROUP, VERSION
from tools.chartdocs.cli_schema import schema

Body = dict[str, Any]
_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass(frozen=True)
class Statement:
    """An answer that a user got, and whether it is so. about: command and job; answer: the words or the number."""

    about: str
    answer: object
    true: bool


class Asker:
    """A user of one namespace."""

    def __init__(self, kubeconfig: Path, client: ClusterClient, namespace: str, operator_namespace: str) -> None:
        self.namespace = namespace
        self._kubeconfig = kubeconfig
        self._client = client
        self._operator_namespace = operator_namespace

    def text(self, command: str, *words: str) -> str:
        """What a command prints. It must succeed."""
        where = ["--kubeconfig", str(self._kubeconfig)]
        if "-n" not in words:
            where += ["-n", self.namespace]
        if command != "history" and "--operator-namespace" not in words:
            where += ["--operator-namespace", self._operator_namespace]
        stream = io.StringIO()
        with redirect_stdout(stream):
            assert main([command, *words, *where]) == 0, (command, words)
        return stream.getvalue()

    def document(self, command: str, *words: str) -> Body:
        """The same as JSON, which keeps the published schema."""
        found = dict(json.loads(self.text(command, *words, "-o", "json")))
        _validator(found["kind"]).validate(found)
        return found

    def columns(self) -> dict[str, dict[str, str]]:
        """What `kubectl get profiledjobs -o wide` shows, by job and title. The API server makes this table."""
        api = config.new_client_from_config(str(self._kubeconfig))
        try:
            headers = {"Accept": _TABLE}
            path = f"/apis/{GROUP}/{VERSION}/namespaces/{self.namespace}/profiledjobs"
            api.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
            answer = api.call_api("GET", api.configuration.host + path, headers)
            table = json.loads(answer.read())
        finally:
            api.close()
        titles = [column["name"] for column in table["columnDefinitions"]]
        rows = [dict(zip(titles, row["cells"], strict=True)) for row in table["rows"]]
        return {row["Name"]: {title: "" if cell is None else str(cell) for title, cell in row.items()} for row in rows}

    def browser(self) -> TestClient:
        """The page of this namespace; each answer is read anew by the cluster."""
        connection = Connection(self._client, self.namespace, "")
        pages = Pages(PictureSource(connection, False, self._operator_namespace))
        return TestClient(application(pages), base_url="http://127.0.0.1:8270")


@cache
def _validator(kind: str) -> Draft202012Validator:
    """Made once: to check the schema itself takes longer than to check a document by it."""
    Draft202012Validator.check_schema(schema(kind))
    return Draft202012Validator(schema(kind))


def table_of(page: str, identity: str) -> dict[str, dict[str, str]]:
    """The rows of a table of the page by their id, each by the titles of its columns. identity: how ids begin."""
    rows: dict[str, dict[str, str]] = {}
    for table in re.findall(r"<table.*?</table>", page, flags=re.S):
        titles = [_words(title) for title in re.findall(r"<th scope=\"col\".*?</th>", table, flags=re.S)]
        for name, row in re.findall(rf'<tr id="{identity}([^"]*)".*?>(.*?)</tr>', table, flags=re.S):
            cells = [_words(cell) for cell in re.findall(r"<td.*?</td>", row, flags=re.S)]
            rows[unescape(name)] = dict(zip(titles, cells, strict=True))
    return rows


def words_of(page: str) -> str:
    """The text of a page without drawings."""
    return _words(re.sub(r"<(svg|button|style).*?</\1>", " ", page, flags=re.S))


def _words(text: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())
