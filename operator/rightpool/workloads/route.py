"""Weights of an HTTPRoute: what a move changes of an object that is its user's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rightpool.workloads.front import beside_of

FINEST: Final = 100
"""As much as the two weights add up to at least: less has no room for 5%."""


class UnusableRoute(Exception):
    """It has no weights that could be written. The text says what to do about it."""


def weighed(route: Mapping[str, Any], service: str, percent: int) -> list[dict[str, Any]]:
    """The JSON patch after which the Service beside gets this share of what comes to both; empty where it does.

    Nothing but weights of these two in rules that name both is changed, and not their sum: others of the rule get what
    they did. It holds for this version of the route alone. Raises UnusableRoute.
    """
    about, beside = route["metadata"], beside_of(service)
    pairs = list(_pairs(route, service, beside))
    if not pairs:
        raise UnusableRoute(
            f"no rule of HTTPRoute {about['name']} has backendRefs to both Services {service} and {beside}: add them, "
            f"with the weights {FINEST} and 0"
        )
    changes: list[dict[str, Any]] = []
    for path, refs in pairs:
        now = {name: int(ref.get("weight", 1)) for name, (_, ref) in refs.items()}
        whole = sum(now.values())
        if whole < FINEST:
            raise UnusableRoute(
                f"weights of {service} and {beside} in HTTPRoute {about['name']} add up to {whole}, too few for 5%: "
                f"give them {FINEST} and 0"
            )
        there = round(whole * percent / 100.0)
        for name, weight in ((service, whole - there), (beside, there)):
            if now[name] != weight:
                changes.append({"op": "add", "path": f"{path}/{refs[name][0]}/weight", "value": weight})
    fence = [{"op": "replace", "path": f"/metadata/{key}", "value": about[key]} for key in ("uid", "resourceVersion")]
    return [*fence, *changes] if changes else []


def _pairs(route: Mapping[str, Any], *names: str) -> Iterator[tuple[str, dict[str, tuple[int, Mapping[str, Any]]]]]:
    """JSON pointers to the backendRefs of rules that name each of these Services once, and where each of them is."""
    for number, rule in enumerate(route["spec"].get("rules") or ()):
        refs = [
            (str(ref["name"]), (index, ref))
            for index, ref in enumerate(rule.get("backendRefs") or ())
            if ref["name"] in names and _is_own_service(ref, str(route["metadata"]["namespace"]))
        ]
        if sorted(name for name, _ in refs) == sorted(names):
            yield f"/spec/rules/{number}/backendRefs", dict(refs)


def _is_own_service(ref: Mapping[str, Any], namespace: str) -> bool:
    kind = (ref.get("group") or "", ref.get("kind") or "Service")
    return kind == ("", "Service") and (ref.get("namespace") or namespace) == namespace
