"""The page of Argo CD and Flux names what the operator writes of each kind, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import yaml

from rightpool.api.placement import Placement
from rightpool.contract import FIELD_MANAGER
from rightpool.workloads.kinds.kind import adoption_of
from rightpool.workloads.kinds.registry import KINDS, adoptable
from tests.unit.workloads.kinds.test_contract import Body, each_adopted_kind, users
from tests.unit.workloads.samples import ref

# What takes a new object: what a repository has is not made anew.
NEW: Final = {"jobSet": {"completions", "parallelism", "resources"}, "trainJob": {"trainer"}}
PAGE: Final = Path(__file__).parents[4] / "docs/how-to/gitops.md"


def snippet(tool: str) -> Body:
    """The YAML of the page that its first line names this tool in."""
    [found] = re.findall(rf"```yaml\n# {tool}\b.*?\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    read: Body = yaml.safe_load(found)
    return read


def pointers(value: object) -> set[str]:
    """To each value that is set here."""
    if not isinstance(value, dict):
        return {""}
    return {f"/{name}{rest}" for name, inner in value.items() for rest in pointers(inner)}


@each_adopted_kind
def test_flux_leaves_alone_each_field_that_is_written_and_no_other(field: str) -> None:
    kind = KINDS[field]
    [found] = [one for one in snippet("Flux")["ignore"] if one["target"]["kind"] == kind.resource.kind]
    assert found["target"]["group"] == kind.resource.group
    written = {
        *adoption_of(kind).settings(users(field, ref(2, 2))),
        *pointers(kind.suspension(True, Placement("", 1, 1), 1)),
    }
    written = {one for one in written if not {*one.split("/")} & NEW.get(field, set())}
    # The page shows the first of a list. What is in a field that is left alone is so, too.
    first = {re.sub(r"/\d+/", "/0/", pointer) for pointer in written}
    outermost = {one for one in first if not any(one.startswith(f"{other}/") for other in first)}
    assert set(found["paths"]) == outermost


def test_argo_leaves_alone_what_the_operator_has_written_of_each_kind() -> None:
    found = snippet("Argo CD")["ignoreDifferences"]
    assert {(one["group"], one["kind"]) for one in found} == {
        (kind.resource.group, kind.resource.kind) for kind in adoptable()
    }
    assert all(one["managedFieldsManagers"] == [FIELD_MANAGER] for one in found)
