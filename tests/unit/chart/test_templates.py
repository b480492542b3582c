"""The templates with various values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rightpool import contract
from rightpool.handlers.probes import ALIVE_PATH, READY_PATH
from rightpool.settings import OperatorSettings

from .rendering import CHART, Helm, kinds, one

# Everything enabled, for rules that hold for all objects of the chart.
EVERYTHING: dict[str, Any] = {
    "prometheus": {"url": "http://prometheus.monitoring:9090"},
    "serviceMonitor": {"enabled": True, "labels": {"release": "monitoring"}},
    "podMonitor": {"enabled": True, "labels": {"release": "monitoring"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "monitoring"}},
    "networkPolicy": {"enabled": True},
}
SELECTOR = {"app.kubernetes.io/name": "rightpool", "app.kubernetes.io/instance": "rightpool"}


def test_lint_has_nothing_to_say(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


def test_kinds_that_may_be_absent_are_off(helm: Helm) -> None:
    rendered = helm.render()
    groups = {item["apiVersion"].rpartition("/")[0] for item in rendered}
    assert "monitoring.coreos.com" not in groups
    assert "NetworkPolicy" not in kinds(rendered)
    assert {"ServiceMonitor", "PodMonitor", "PrometheusRule", "NetworkPolicy"} <= kinds(helm.render(EVERYTHING))


@pytest.mark.parametrize(("replicas", "budgets"), [(1, 0), (2, 1), (3, 1)])
def test_a_budget_never_blocks_the_only_replica(helm: Helm, replicas: int, budgets: int) -> None:
    rendered = helm.render({"replicaCount": replicas})
    assert sum(item["kind"] == "PodDisruptionBudget" for item in rendered) == budgets


def test_replicas_prefer_different_nodes_and_zones(helm: Helm) -> None:
    pod = one(helm.render(), "Deployment")["spec"]["template"]["spec"]
    (term,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["labelSelector"]["matchLabels"] == SELECTOR
    (spread,) = pod["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("topology.kubernetes.io/zone", "ScheduleAnyway")


def test_scheduling_values_replace_the_defaults(helm: Helm) -> None:
    affinity: dict[str, Any] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    spread = [{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]
    rendered = helm.render({"affinity": affinity, "topologySpreadConstraints": spread})
    pod = one(rendered, "Deployment")["spec"]["template"]["spec"]
    assert pod["affinity"] == affinity
    assert pod["topologySpreadConstraints"] == spread


@pytest.mark.parametrize("release", ["rightpool", "prod", "a" * 53])
def test_names_fit(helm: Helm, release: str) -> None:
    for item in helm.render(EVERYTHING, release=release):
        assert len(item["metadata"]["name"]) <= (253 if item["kind"] == "ConfigMap" else 63)


def test_every_selector_finds_the_operators_pods_and_nothing_else(helm: Helm) -> None:
    rendered = helm.render(EVERYTHING)
    deployment = one(rendered, "Deployment")["spec"]
    assert deployment["selector"]["matchLabels"] == SELECTOR
    assert deployment["template"]["metadata"]["labels"] == SELECTOR
    assert one(rendered, "Service")["spec"]["selector"] == SELECTOR
    assert one(rendered, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == SELECTOR
    assert one(rendered, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == SELECTOR
    assert one(rendered, "ServiceMonitor")["spec"]["selector"]["matchLabels"].items() <= SELECTOR.items()
    test = one(rendered, "Pod", "rightpool-test")
    assert test["metadata"]["labels"].items() & SELECTOR.items() != SELECTOR.items()


def test_pods_keep_the_restricted_standard(helm: Helm) -> None:
    rendered = helm.render(EVERYTHING)
    for spec in (
        one(rendered, "Deployment")["spec"]["template"]["spec"],
        one(rendered, "Pod", "rightpool-test")["spec"],
    ):
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"] and container["resources"]["limits"]


def test_a_start_may_take_minutes_and_a_hang_may_not(helm: Helm) -> None:
    """A replica that has 20m of processor time needs more than two minutes until it listens."""
    container = one(helm.render(), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    start, alive = container["startupProbe"], container["livenessProbe"]
    assert start["tcpSocket"] == {"port": "health"}  # what hangs later than that is for the liveness probe to find
    assert start["periodSeconds"] * start["failureThreshold"] >= 900, "as docs/how-to/install.md says"
    assert alive["periodSeconds"] * alive["failureThreshold"] <= 60
    assert "initialDelaySeconds" not in alive


def test_the_profilers_are_scraped_by_the_contract(helm: Helm) -> None:
    """Ports, labels and target labels are the ones that the operator's queries and injection use."""
    spec = one(helm.render(EVERYTHING), "PodMonitor", "rightpool-profilers")["spec"]
    assert spec["selector"]["matchExpressions"] == [{"key": contract.LABEL_JOB, "operator": "Exists"}]
    assert spec["namespaceSelector"] == {"any": True}
    sidecar, server = spec["podMetricsEndpoints"]
    assert (sidecar["port"], server["port"]) == (contract.SIDECAR_PORT_NAME, "metrics")
    meta = "__meta_kubernetes_pod_label_"
    for endpoint in (sidecar, server):
        assert endpoint["honorLabels"] is False
        assert {rule["targetLabel"]: rule["sourceLabels"] for rule in endpoint["relabelings"]} == {
            "namespace": ["__meta_kubernetes_namespace"],
            "pod": ["__meta_kubernetes_pod_name"],
            "profiledjob": [meta + contract.LABEL_JOB.replace(".", "_").replace("/", "_")],
            "revision": [meta + contract.LABEL_REVISION.replace(".", "_").replace("/", "_")],
        }
    # A server's page is its user's: it must not say what a profiler says.
    (dropped,) = server["metricRelabelings"]
    assert (dropped["action"], dropped["regex"]) == ("drop", "rightpool_.*")


def test_watched_namespaces_bound_rights_scrapes_and_traffic(helm: Helm) -> None:
    rendered = helm.render({**EVERYTHING, "watchNamespaces": ["research", "prod"]})
    roles = {item["metadata"]["namespace"] for item in rendered if item["kind"] == "Role"}
    assert roles == {"research", "prod", "rightpool-system", "default"}
    assert one(rendered, "Role", "rightpool-pool-events")["rules"] == [
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}
    ]
    written = {resource for rule in one(rendered, "ClusterRole")["rules"] for resource in rule["resources"]}
    assert not written & {"jobs", "services", "pods", "profiledjobs/status"}
    monitor = one(rendered, "PodMonitor", "rightpool-profilers")["spec"]
    assert monitor["namespaceSelector"] == {"matchNames": ["research", "prod"]}
    sidecars = one(rendered, "NetworkPolicy")["spec"]["egress"][-1]
    (expression,) = sidecars["to"][0]["namespaceSelector"]["matchExpressions"]
    assert expression["values"] == ["research", "prod"]


@pytest.mark.parametrize("watched", [[], ["default"], ["default", "prod"]])
def test_who_may_send_events_in_default_anyway_gets_no_role_for_it(helm: Helm, watched: list[str]) -> None:
    roles = [item["metadata"]["name"] for item in helm.render({"watchNamespaces": watched}) if item["kind"] == "Role"]
    assert "rightpool-pool-events" not in roles


@pytest.mark.parametrize(
    ("url", "given", "port"),
    [
        ("http://prometheus.monitoring:9090", 0, 9090),
        ("http://prometheus.monitoring:9090/prefix", 0, 9090),
        ("https://metrics.example.com/prefix", 0, 443),
        ("http://prometheus", 0, 80),
        ("http://[fd00::1]:9091", 0, 9091),
        ("http://[fd00::1]", 0, 80),
        ("http://prometheus.monitoring", 9090, 9090),
    ],
)
def test_prometheus_may_be_reached(helm: Helm, url: str, given: int, port: int) -> None:
    values = {"prometheus": {"url": url}, "networkPolicy": {"enabled": True, "prometheusPort": given}}
    egress = one(helm.render(values), "NetworkPolicy")["spec"]["egress"]
    assert egress[2] == {"ports": [{"protocol": "TCP", "port": port}]}


def test_the_operator_reaches_profilers_and_the_pages_of_servers(helm: Helm) -> None:
    """The second by the name that it gives to the port: which number it has is the user's."""
    profilers = one(helm.render({"networkPolicy": {"enabled": True}}), "NetworkPolicy")["spec"]["egress"][-1]
    assert [port["port"] for port in profilers["ports"]] == [contract.SIDECAR_PORT, "metrics"]
    (peer,) = profilers["to"]
    assert peer["podSelector"] == {"matchExpressions": [{"key": contract.LABEL_JOB, "operator": "Exists"}]}


def test_no_prometheus_no_way_to_it(helm: Helm) -> None:
    assert len(one(helm.render({"networkPolicy": {"enabled": True}}), "NetworkPolicy")["spec"]["egress"]) == 3


def test_environment_matches_the_settings(helm: Helm) -> None:
    rendered = helm.render(
        {**EVERYTHING, "watchNamespaces": ["research"], "extraEnv": [{"name": "RIGHTPOOL_API_QPS", "value": "9"}]}
    )
    container = one(rendered, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    names = [variable["name"] for variable in container["env"]]
    assert len(names) == len(set(names))
    known = {f"RIGHTPOOL_{field.upper()}" for field in OperatorSettings.model_fields}
    assert set(names) <= known
    given = {v["name"].removeprefix("RIGHTPOOL_").lower(): v["value"] for v in container["env"] if "value" in v}
    settings = OperatorSettings(**given)
    assert settings.watch_namespaces == ("research",)
    assert settings.api_qps == 9
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"health": settings.liveness_port, "metrics": settings.metrics_port}
    assert container["livenessProbe"]["httpGet"] == {"path": ALIVE_PATH, "port": "health"}
    assert container["readinessProbe"]["httpGet"] == {"path": READY_PATH, "port": "health"}
    lease = one(rendered, "Role", "rightpool-lease")["rules"][1]
    assert lease["resourceNames"] == [settings.lease_name]


def test_definitions_are_those_of_the_repository(helm: Helm) -> None:
    rendered = [item for item in helm.render() if item["kind"] == "CustomResourceDefinition"]
    files = [yaml.safe_load(path.read_text()) for path in sorted((CHART.parents[1] / "crds").glob("*.yaml"))]
    for item in rendered:
        assert item["metadata"].pop("annotations")["helm.sh/resource-policy"] == "keep"
    assert sorted(rendered, key=str) == sorted(files, key=str)
    assert not any(i["kind"] == "CustomResourceDefinition" for i in helm.render({"crds": {"install": False}}))


def test_the_catalogue_entry_names_existing_files(helm: Helm) -> None:
    """Artifact Hub shows the annotations of Chart.yaml."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    crds = yaml.safe_load(chart["annotations"]["artifacthub.io/crds"])
    defined = {i["metadata"]["name"]: i["spec"] for i in helm.render() if i["kind"] == "CustomResourceDefinition"}
    assert {crd["name"]: crd["kind"] for crd in crds} == {name: spec["names"]["kind"] for name, spec in defined.items()}
    assert all(crd["version"] in [v["name"] for v in defined[crd["name"]]["versions"]] for crd in crds)
    images = {image["image"] for image in yaml.safe_load(chart["annotations"]["artifacthub.io/images"])}
    container = one(helm.render(), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    sidecar = next(v["value"] for v in container["env"] if v["name"] == "RIGHTPOOL_SIDECAR_IMAGE")
    assert images == {container["image"], sidecar}


@pytest.mark.parametrize("keep", [True, False])
def test_resources_that_jobs_need_are_kept(helm: Helm, keep: bool) -> None:
    rendered = helm.render({"crds": {"keep": keep}})
    kept = {
        item["kind"]
        for item in rendered
        if item["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }
    assert kept == ({"CustomResourceDefinition", "Secret"} if keep else set())


def test_a_given_key_makes_rendering_repeatable(helm: Helm) -> None:
    """Argo CD and Flux compare one rendering with the next."""
    values = {**EVERYTHING, "sidecarKey": {"existingSecret": "key"}}
    assert helm.text(values) == helm.text(values)
    assert "Secret" not in kinds(helm.render(values))
    volumes = one(helm.render(values), "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert volumes[0]["secret"]["secretName"] == "key"


def test_digests_win_over_tags(helm: Helm) -> None:
    digest = "sha256:" + "a" * 64
    image = {"repository": "r/operator", "tag": "t", "digest": digest}
    container = one(helm.render({"image": image}), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"r/operator@{digest}"


def test_extra_objects_are_templates(helm: Helm) -> None:
    extra = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "{{ .Release.Name }}-mine", "namespace": "{{ .Release.Namespace }}"},
    }
    made = one(helm.render({"extraObjects": [extra]}), "ConfigMap", "rightpool-mine")
    assert made["metadata"]["namespace"] == "rightpool-system"


def test_a_package_has_everything(helm: Helm, tmp_path: Path) -> None:
    """The definitions are links to another folder of the repository: a package has to have the files."""
    helm("package", str(CHART), "--destination", str(tmp_path))
    (package,) = tmp_path.glob("rightpool-*.tgz")
    values = {**EVERYTHING, "sidecarKey": {"existingSecret": "key"}}
    assert helm.text(values, chart=package) == helm.text(values)
