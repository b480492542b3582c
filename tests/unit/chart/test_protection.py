"""Objects of the chart that protect a cluster: admission policies, rights, and the profilers' port."""

from __future__ import annotations

import re
from typing import Any

import yaml

from rightpool import contract
from rightpool.workloads.kinds.registry import KINDS

from .rendering import CHART, NAMESPACE, Helm, Object, kinds, one

POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
_WRAPPED = ("jobs", "jobsets", "leaderworkersets", "trainjobs", "trainingruntimes", "deployments")
GUARDED = (*_WRAPPED, "replicasets", "statefulsets", "pods")
NAMES = {f"rightpool-{name}" for name in (*GUARDED, "workloads", "status", "podtemplates")}


def names(rendered: list[Object], kind: str) -> set[str]:
    return {item["metadata"]["name"] for item in rendered if item["kind"] == kind}


def test_every_policy_denies_and_is_bound(helm: Helm) -> None:
    rendered = helm.render()
    assert names(rendered, POLICY) == names(rendered, BINDING) == NAMES
    for name in NAMES:
        assert one(rendered, POLICY, name)["spec"]["failurePolicy"] == "Fail"
        assert one(rendered, BINDING, name)["spec"] == {"policyName": name, "validationActions": ["Deny"]}


def test_policies_are_left_out_where_there_are_none(helm: Helm) -> None:
    assert POLICY not in kinds(helm.render({"admission": {"enabled": False}}))
    old = helm("template", "rightpool", str(CHART), "--kube-version", "1.29.0")
    assert not kinds([item for item in yaml.safe_load_all(old) if item]) & {POLICY, BINDING}


def test_the_profiler_is_admitted_where_the_api_server_can(helm: Helm) -> None:
    """The policy, what the operator knows of it, and the rights that it takes come together or not at all."""
    has = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
    chart = ("template", "rightpool", str(CHART), "--namespace", NAMESPACE, "--kube-version", "1.36.0")

    def parts(*more: str) -> tuple[bool, bool, bool]:
        text = helm(*chart, *more)
        rendered = [item for item in yaml.safe_load_all(text) if item]
        rights = [rule["resources"] for rule in one(rendered, "ClusterRole")["rules"]]
        policies = names(rendered, "MutatingAdmissionPolicy"), names(rendered, "MutatingAdmissionPolicyBinding")
        profilers = {"rightpool-profiler", "rightpool-profiler-groups"}
        assert policies in ((profilers, profilers), (set(), set()))
        return bool(policies[0]), "RIGHTPOOL_ADMITS_PROFILER" in text, ["podtemplates"] in rights

    assert parts("--api-versions", has) == (True, True, True)
    assert parts() == (False, False, False)
    assert parts("--api-versions", has, "--set", "admission.enabled=false") == (False, False, False)


def test_what_is_put_into_pods_is_written_by_the_operator_alone(helm: Helm) -> None:
    policy = one(helm.render(), POLICY, "rightpool-podtemplates")["spec"]
    [expression] = policy["matchConstraints"]["objectSelector"]["matchExpressions"]
    assert expression == {"key": contract.LABEL_JOB, "operator": "Exists"}, "as the profiler's policy selects them"
    [rule] = policy["validations"]
    assert f"system:serviceaccount:{NAMESPACE}:rightpool" in rule["expression"]
    assert "job-controller" not in rule["expression"], "who makes pods does not say what is put into them"


def test_policies_of_two_releases_have_nothing_in_common(helm: Helm) -> None:
    other = helm.render({"watchNamespaces": ["prod"]}, release="second")
    assert not names(other, POLICY) & NAMES
    for item in (item for item in other if item["kind"] == BINDING):
        selector = item["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert selector == [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["prod"]}]
    status = one(other, POLICY, "second-rightpool-status")["spec"]["validations"][0]["expression"]
    assert f"system:serviceaccount:{NAMESPACE}:second-rightpool" in status


def pod_parts(schema: dict[str, Any], path: str = "spec") -> set[str]:
    """The fields that hold what the schema does not judge: templates, parts of them, and rules that go to the child."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return {path}
    inner = {f"{path}.{name}": part for name, part in schema.get("properties", {}).items()}
    if "items" in schema:
        inner[f"{path}[]"] = schema["items"]
    if isinstance(schema.get("additionalProperties"), dict):
        inner[f"{path}.*"] = schema["additionalProperties"]
    return {found for where, part in inner.items() for found in pod_parts(part, where)}


def test_whatever_becomes_a_part_of_a_pod_needs_the_right_to_create_jobs(helm: Helm) -> None:
    (condition,) = one(helm.render(), POLICY, "rightpool-workloads")["spec"]["matchConditions"]
    compared = re.findall(r"object\.(spec(?:\.\??\w+)+) !=", condition["expression"])
    guarded = {field.replace("?", "") for field in compared}
    crd = yaml.safe_load((CHART.parents[1] / "crds" / "rightpool.dev_profiledjobs.yaml").read_text())
    parts = {
        part
        for version in crd["spec"]["versions"]
        for part in pod_parts(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    }
    wrapped = {f"spec.workload.{kind}.template" for kind in ("job", "jobSet", "trainJob", "leaderWorkerSet", "server")}
    assert wrapped | {"spec.placement.variants[].template"} <= parts
    assert not {part for part in parts if not any(part.startswith((f"{g}.", f"{g}[")) for g in guarded)}


def test_every_kind_needs_the_right_to_create_it(helm: Helm) -> None:
    rights = [rule["expression"] for rule in one(helm.render(), POLICY, "rightpool-workloads")["spec"]["validations"]]
    for kind in KINDS.values():
        of = f"authorizer.group('{kind.resource.group}').resource('{kind.resource.plural}')"
        (create,) = (text for text in rights if f"workload.?{kind.field}.hasValue()" in text)
        assert f"{of}.namespace(request.namespace).check('create').allowed()" in create


def test_labels_that_make_a_pod_ours_are_the_contracts(helm: Helm) -> None:
    rendered = helm.render()
    for name in GUARDED:
        text = yaml.safe_dump(one(rendered, POLICY, f"rightpool-{name}"))
        assert contract.LABEL_JOB in text and contract.LABEL_REVISION in text


def rules(rendered: list[Object]) -> list[dict[str, Any]]:
    return [rule for item in rendered if item["kind"] in ("Role", "ClusterRole") for rule in item["rules"]]


def test_no_right_is_a_wildcard_or_reaches_secrets(helm: Helm) -> None:
    for values in ({}, {"watchNamespaces": ["research"]}):
        for rule in rules(helm.render(values)):
            for part in ("apiGroups", "resources", "verbs"):
                assert not any("*" in text for text in rule[part]), rule
            assert not {"secrets", "serviceaccounts", "pods/exec", "pods/log", "nodes/proxy"} & set(rule["resources"])
            assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])


def test_cluster_wide_writes_are_of_pools_and_the_policys_status_where_namespaces_are_named(helm: Helm) -> None:
    looking = {"get", "list", "watch"}
    rendered = helm.render({"watchNamespaces": ["research"]})
    written = {
        r for rule in one(rendered, "ClusterRole")["rules"] if set(rule["verbs"]) - looking for r in rule["resources"]
    }
    assert written == {"acceleratorpools", "acceleratorpools/status", "placementpolicies/status"}
    read = {r for rule in one(rendered, "ClusterRole")["rules"] for r in rule["resources"]}
    others = {"placementpolicies", "nodes", "persistentvolumes", "namespaces", "deviceclasses", "resourceslices"}
    others |= {"clustertrainingruntimes"}
    assert read == written | others


def test_only_the_profilers_port_is_closed(helm: Helm) -> None:
    prometheus = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    chosen = {"enabled": True, "profilersIn": ["research", "prod"], "profilersFrom": [prometheus]}
    rendered = [i for i in helm.render({"networkPolicy": chosen}) if i["metadata"]["name"] == "rightpool-profilers"]
    assert [item["metadata"]["namespace"] for item in rendered] == ["research", "prod"]
    spec = rendered[0]["spec"]
    assert spec["podSelector"] == {"matchExpressions": [{"key": contract.LABEL_JOB, "operator": "Exists"}]}
    profiler, others = spec["ingress"]
    assert profiler["ports"] == [{"protocol": "TCP", "port": contract.SIDECAR_PORT}]
    assert profiler["from"][1] == prometheus
    assert "from" not in others
    open_to_all = {
        port
        for range_ in others["ports"]
        if range_["protocol"] == "TCP"
        for port in range(range_["port"], range_["endPort"] + 1)
    }
    assert open_to_all == set(range(1, 65536)) - {contract.SIDECAR_PORT}
    assert "rightpool-profilers" not in names(helm.render({"networkPolicy": {"enabled": True}}), "NetworkPolicy")


def test_the_installations_test_may_read_the_operators_metrics(helm: Helm) -> None:
    """Where only some may: else `helm test` fails on every network plugin that enforces policies."""
    prometheus = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    rendered = helm.render({"networkPolicy": {"enabled": True, "ingressFrom": [prometheus]}})
    policy = one(rendered, "NetworkPolicy")
    (metrics,) = (rule for rule in policy["spec"]["ingress"] if rule["ports"][0]["port"] == "metrics")
    test = one(rendered, "Pod", "rightpool-test")
    assert metrics["from"] == [prometheus, {"podSelector": {"matchLabels": test["metadata"]["labels"]}}]
    assert not policy["spec"]["podSelector"]["matchLabels"].items() <= test["metadata"]["labels"].items()
