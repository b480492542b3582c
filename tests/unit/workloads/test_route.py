"""What is written of an HTTPRoute: two weights of rules that name both Services, and nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.workloads.route import FINEST, UnusableRoute, weighed

HERE, NEXT = "ranker", "ranker-next"


def ref(name: str, weight: int | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "port": 8000, **({} if weight is None else {"weight": weight}), **more}


def route(*rules: list[dict[str, Any]]) -> dict[str, Any]:
    about = {"name": "edge", "namespace": "shop", "uid": "u", "resourceVersion": "7"}
    return {"metadata": about, "spec": {"rules": [{"backendRefs": refs} for refs in rules]}}


def patched(body: dict[str, Any], changes: list[dict[str, Any]]) -> dict[str, Any]:
    made = copy.deepcopy(body)
    for change in changes:
        *path, last = change["path"].split("/")[1:]
        at: Any = made
        for part in path:
            at = at[int(part)] if part.isdigit() else at[part]
        at[last] = change["value"]
    return made


def weights(body: dict[str, Any]) -> list[list[int | None]]:
    return [[one.get("weight") for one in rule.get("backendRefs", ())] for rule in body["spec"]["rules"]]


def test_the_two_share_what_they_had_together() -> None:
    body = route([ref("canary", 300), ref(HERE, 200), ref(NEXT, 0)], [ref(HERE)], [ref(NEXT, 0), ref(HERE, 100)])
    changes = weighed(body, HERE, 25)
    assert weights(patched(body, changes)) == [[300, 150, 50], [None], [25, 75]]
    fence = [(one["op"], one["path"], one["value"]) for one in changes[:2]]
    assert fence == [("replace", "/metadata/uid", "u"), ("replace", "/metadata/resourceVersion", "7")]


FOREIGN = {
    "of another namespace": {"namespace": "other"},
    "no Service": {"kind": "InferencePool", "group": "inference.networking.k8s.io"},
}


@pytest.mark.parametrize("foreign", FOREIGN)
def test_what_is_no_service_of_its_namespace_is_left_alone(foreign: str) -> None:
    with pytest.raises(UnusableRoute, match="has backendRefs to both Services ranker and ranker-next"):
        weighed(route([ref(HERE, 100), ref(NEXT, 0, **FOREIGN[foreign])]), HERE, 5)


@pytest.mark.parametrize("rules", [(), ([ref(HERE, 100)],), ([ref(HERE, 50), ref(HERE, 50), ref(NEXT, 0)],)])
def test_a_route_without_both_says_what_to_add(rules: Any) -> None:
    with pytest.raises(UnusableRoute, match="add them, with the weights 100 and 0"):
        weighed(route(*rules), HERE, 0)


def test_weights_too_coarse_for_a_step_are_no_weights() -> None:
    with pytest.raises(UnusableRoute, match="add up to 1, too few for 5%") as found:
        weighed(route([ref(HERE), ref(NEXT, 0)]), HERE, 5)
    assert len(str(found.value)) <= 160


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 100), st.integers(0, 10**6))
def test_a_share_is_exact_and_written_once(here: int, there: int, percent: int, other: int) -> None:
    body = route([ref(HERE, here), ref("other", other), ref(NEXT, there)])
    if here + there < FINEST:
        with pytest.raises(UnusableRoute):
            weighed(body, HERE, percent)
        return
    made = patched(body, weighed(body, HERE, percent))
    [[first, kept, second]] = weights(made)
    assert first is not None and second is not None
    assert (first + second, kept) == (here + there, other)
    assert abs(second - (here + there) * percent / 100.0) <= 0.5
    assert (second == 0) == (percent == 0) and (first == 0) == (percent == 100)
    assert weighed(made, HERE, percent) == [], "nothing is written where nothing changes"
