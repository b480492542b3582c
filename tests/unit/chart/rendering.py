"""`helm template` as a function."""

from __future__ import annotations

import copy
import functools
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[3] / "charts" / "rightpool"
NAMESPACE = "rightpool-system"

Object = dict[str, Any]


class Refused(Exception):
    """helm rejects the values. The message is helm's."""


@dataclass(frozen=True)
class Helm:
    """The helm binary."""

    program: str

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        result = subprocess.run([self.program, *arguments], input=stdin, capture_output=True, text=True, timeout=240)
        if result.returncode != 0:
            raise Refused(f"{result.stdout}\n{result.stderr}")
        return result.stdout

    def text(self, values: Object | None = None, *, release: str = "rightpool", chart: Path = CHART) -> str:
        return self(
            *("template", release, str(chart), "--namespace", NAMESPACE, "--kube-version", "1.34.0", "--values", "-"),
            stdin=json.dumps(values or {}),
        )

    def render(self, values: Object | None = None, *, release: str = "rightpool") -> list[Object]:
        """The objects in the order in which helm applies them; hooks last. The same values are rendered once."""
        return copy.deepcopy(_rendered(self, json.dumps(values or {}, sort_keys=True), release))


@functools.cache
def _rendered(helm: Helm, values: str, release: str) -> list[Object]:
    text = helm.text(json.loads(values), release=release)
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


def one(objects: list[Object], kind: str, name: str = "rightpool") -> Object:
    """The only object of this kind and name."""
    found = [item for item in objects if item["kind"] == kind and item["metadata"]["name"] == name]
    assert len(found) == 1, f"{len(found)} objects {kind} {name}"
    return found[0]


def kinds(objects: list[Object]) -> set[str]:
    return {item["kind"] for item in objects}
