"""What the chart says of each kind of child: the operator's rights, and what keeps others from making one."""

from __future__ import annotations

import pytest

from rightpool.workloads.kinds.kind import Kind
from rightpool.workloads.kinds.registry import KINDS

from .rendering import Helm, one

POLICY = "ValidatingAdmissionPolicy"
VERBS = {"get", "list", "watch", "create", "patch", "delete"}

each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@each_kind
def test_the_operator_has_the_rights_that_a_child_needs(helm: Helm, kind: Kind) -> None:
    granted: set[str] = set()
    for rule in one(helm.render(), "ClusterRole")["rules"]:
        if kind.resource.group in rule["apiGroups"] and kind.resource.plural in rule["resources"]:
            granted |= set(rule["verbs"])
    assert granted == VERBS


@each_kind
def test_writing_a_workload_requires_the_right_to_create_its_child(helm: Helm, kind: Kind) -> None:
    rules = one(helm.render(), POLICY, "rightpool-workloads")["spec"]["validations"]
    [rule] = (rule["expression"] for rule in rules if f"spec.?workload.?{kind.field}.hasValue()" in rule["expression"])
    assert f"authorizer.group('{kind.resource.group}').resource('{kind.resource.plural}')" in rule


@each_kind
def test_naming_an_object_requires_the_rights_to_what_is_done_to_it(helm: Helm, kind: Kind) -> None:
    rules = one(helm.render(), POLICY, "rightpool-workloads")["spec"]["validations"]
    change, anew = (
        rule["expression"].replace(" ", "").replace("\n", "")
        for rule in rules
        if f"kind.orValue('') != '{kind.resource.kind}'" in rule["expression"]
    )
    asked = f"group('{kind.resource.group}').resource('{kind.resource.plural}').namespace(request.namespace)"
    assert f"{asked}.name(object.spec.workloadRef.name).check('update')" in change
    assert f"{asked}.name(object.spec.workloadRef.name).check('delete')" in anew and f"{asked}.check('create')" in anew


@each_kind
def test_only_the_operator_may_set_our_labels_on_a_child(helm: Helm, kind: Kind) -> None:
    spec = one(helm.render(), POLICY, f"rightpool-{kind.resource.plural}")["spec"]
    [rule] = spec["matchConstraints"]["resourceRules"]
    assert (rule["apiGroups"], rule["resources"]) == ([kind.resource.group], [kind.resource.plural])


@pytest.mark.parametrize("scope", [{}, {"watchNamespaces": ["shop"]}], ids=["everywhere", "named"])
def test_weights_of_http_routes_are_a_right_that_is_asked_for(helm: Helm, scope: dict[str, list[str]]) -> None:
    def verbs(enabled: bool) -> list[str]:
        objects = helm.render({"httpRoutes": {"enabled": enabled}, **scope})
        kinds = {"Role" if scope else "ClusterRole"}
        rules = [rule for item in objects if item["kind"] in kinds for rule in item["rules"]]
        return [verb for rule in rules if "httproutes" in rule["resources"] for verb in rule["verbs"]]

    assert (verbs(True), verbs(False)) == (["get", "patch"], [])
