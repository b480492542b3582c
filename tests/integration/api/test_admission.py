"""Which objects a real API server rejects, and its messages. The cases are in cases.py and
schema_cases.py; each rule must have one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from .cases import CASES
from .conftest import CRDS, Refusal, Server
from .objects import ABSENT, JOB, POLICY, POOL, REFERENCE, Case, Object, asking, changed, containers
from .schema_cases import SCHEMA_CASES
from .server_cases import HISTOGRAM, LATENCY, SERVER, WARM

pytestmark = pytest.mark.cluster

AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
EXAMPLES = Path(__file__).parents[3] / "examples"


def refusals(server: Server, obj: Object) -> list[Refusal]:
    """A status is taken only of an object that is there."""
    if "status" not in obj:
        return server.refusals(lambda: server.create(obj, dry_run=True))
    server.create({key: value for key, value in obj.items() if key != "status"})
    try:
        return server.refusals(lambda: server.apply_status(obj, "default", "tests", obj["status"]))
    finally:
        server.call("DELETE", server.path(obj, "default"))


def has(refused: list[Refusal], field: str, words: str) -> bool:
    return any(refusal.field == field and words in refusal.message for refusal in refused)


@pytest.mark.parametrize(
    "base",
    [JOB, SERVER, LATENCY, HISTOGRAM, WARM, POOL, POLICY],
    ids=("job", "server", "latency", "histogram", "warm", "pool", "policy"),
)
def test_the_base_objects_are_admitted(server: Server, base: Object) -> None:
    assert refusals(server, base) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.base['kind']}: {case.id}")
def test_rule_names_the_field_and_the_remedy(server: Server, case: Case) -> None:
    refused = refusals(server, changed(case.base, case.change))
    assert has(refused, case.field, case.message), refused
    assert {refusal.field for refusal in refused} == {case.field}, "one mistake, and no complaint about other fields"


@pytest.mark.parametrize("case", SCHEMA_CASES, ids=lambda case: f"{case.base['kind']}: {case.id}")
def test_schema_names_the_field_and_what_is_allowed(server: Server, case: Case) -> None:
    refused = refusals(server, changed(case.base, case.change))
    assert has(refused, case.field, case.message), refused


def rules_of(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """Each rule with the path of the field that its complaint names."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield path + rule.get("fieldPath", ""), rule
    for name, child in schema.get("properties", {}).items():
        yield from rules_of(child, f"{path}.{name}")
    if "items" in schema:
        yield from rules_of(schema["items"], f"{path}[]")


def all_rules() -> list[tuple[str, str, dict[str, str]]]:
    found = []
    for file in sorted(CRDS.glob("*.yaml")):
        crd = yaml.safe_load(file.read_text(encoding="utf-8"))
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        found += [(crd["spec"]["names"]["kind"], path.removeprefix("."), rule) for path, rule in rules_of(schema)]
    return found


@pytest.mark.parametrize(
    ("kind", "path", "rule"), all_rules(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_rule_has_a_case(kind: str, path: str, rule: dict[str, str]) -> None:
    if "oldSelf" in rule["rule"]:
        return  # rules about changes have tests of their own, below
    assert any(
        case.base["kind"] == kind and re.sub(r"\[\d+\]", "[]", case.field) == path and case.message in rule["message"]
        for case in CASES
    )


def test_several_mistakes_are_reported_at_once(server: Server) -> None:
    wrong = changed(
        JOB,
        {
            "spec.targets": {"budget": "-5"},
            "spec.checkpoint": {"path": "ckpt"},
            "spec.workload.job.template": containers(),
        },
    )
    assert {refusal.field for refusal in refusals(server, wrong)} == {
        "spec.targets.budget",
        "spec.checkpoint.path",
        "spec.workload.job.template.spec.containers",
    }


def test_the_message_names_what_to_remove(server: Server) -> None:
    wrong = changed(JOB, {"spec.workload.job.template": asking("limits", "nvidia.com/mig-1g.5gb")})
    assert any("remove nvidia.com/mig-1g.5gb here" in refusal.message for refusal in refusals(server, wrong))


def test_the_message_names_the_containers_to_choose_from(server: Server) -> None:
    template = containers(*({"name": name, "image": "x"} for name in ("trainer", "logs", "proxy")))
    wrong = changed(JOB, {"spec.workload.job.template": template, "spec.workload.job.chipContainer": "train"})
    assert any("write trainer or logs or another" in refusal.message for refusal in refusals(server, wrong))


def test_the_message_names_the_pool_in_both_lists(server: Server) -> None:
    wrong = changed(JOB, {"spec.placement": {"pools": {"allow": ["a10g", "a100"], "deny": ["a100"]}}})
    assert any("must not name a100, which allow names too" in refusal.message for refusal in refusals(server, wrong))


def test_other_devices_of_the_same_vendor_may_be_asked_for(server: Server) -> None:
    for resource in ("nvidia.com/hostdev", "rdma/hca", "vpc.amazonaws.com/efa", "cpu", "memory", "ephemeral-storage"):
        assert refusals(server, changed(JOB, {"spec.workload.job.template": asking("limits", resource)})) == []


@pytest.mark.parametrize("name", ["a", "b1", "a" * 51, "bert-large-2"])
def test_names_that_leave_room_for_children_are_admitted(server: Server, name: str) -> None:
    assert refusals(server, changed(JOB, {"metadata.name": name})) == []


@pytest.mark.parametrize("path", ["spec.targets.latencies", "spec.workload.pod", "spec.checkpoint.modes"])
def test_unknown_fields_are_refused_as_kubectl_asks(server: Server, path: str) -> None:
    refused = refusals(server, changed(JOB, {path: {}}))
    assert len(refused) == 1
    assert f'unknown field "{path}"' in refused[0].message


def test_the_controller_cannot_change(server: Server, namespace: str) -> None:
    server.create(JOB, namespace)
    refused = server.refusals(lambda: server.patch(JOB, namespace, {"spec": {"managedBy": "example.com/other"}}))
    assert has(refused, "spec.managedBy", "must not change"), refused
    assert has(refused, "spec.managedBy", "delete the job and create it anew"), refused


@pytest.mark.parametrize(("first", "then"), [("research", "prod"), ("research", None), (None, "prod")])
def test_the_queue_cannot_change(server: Server, namespace: str, first: str | None, then: str | None) -> None:
    server.create(JOB if first is None else changed(JOB, {"spec.queueName": first}), namespace)
    refused = server.refusals(lambda: server.patch(JOB, namespace, {"spec": {"queueName": then}}))
    assert has(refused, "spec.queueName", "must not change"), refused
    assert server.patch(JOB, namespace, {"spec": {"suspend": True}})["spec"].get("queueName") == first


@pytest.mark.parametrize("then", [{**REFERENCE, "name": "other"}, None])
def test_the_object_that_it_is_about_cannot_change(server: Server, namespace: str, then: object) -> None:
    server.create(changed(JOB, {"spec.workload": ABSENT, "spec.workloadRef": REFERENCE}), namespace)
    workload = None if then else JOB["spec"]["workload"]
    refused = server.refusals(
        lambda: server.patch(JOB, namespace, {"spec": {"workloadRef": then, "workload": workload}})
    )
    assert has(refused, "spec.workloadRef", "must not change"), refused


@pytest.mark.parametrize(("field", "then"), [("port", 8001), ("traffic", {"service": "other"})])
def test_what_clients_call_cannot_change(server: Server, namespace: str, field: str, then: object) -> None:
    server.create(SERVER, namespace)
    refused = server.refusals(
        lambda: server.patch(SERVER, namespace, {"spec": {"workload": {"server": {field: then}}}})
    )
    where = f"spec.workload.server.{field}" + (".service" if field == "traffic" else "")
    assert has(refused, where, "must not change, since clients call it"), refused
    bounds = {"spec": {"workload": {"server": {"replicas": {"min": 3}}}}}
    assert server.patch(SERVER, namespace, bounds)["spec"]["workload"]["server"]["port"] == 8000


@pytest.mark.parametrize("then", [{"name": "other"}, None])
def test_the_route_whose_weights_are_written_cannot_change(server: Server, namespace: str, then: object) -> None:
    def patch(route: object) -> Any:
        return server.patch(SERVER, namespace, {"spec": {"workload": {"server": {"traffic": {"httpRoute": route}}}}})

    server.create(SERVER, namespace)
    patch({"name": "edge"})
    refused = server.refusals(lambda: patch(then))
    assert has(refused, "spec.workload.server.traffic.httpRoute", "must not change once it is set"), refused


def test_a_job_does_not_become_a_server(server: Server, namespace: str) -> None:
    server.create(JOB, namespace)
    workload = {"job": None, "server": SERVER["spec"]["workload"]["server"]}
    refused = server.refusals(lambda: server.patch(JOB, namespace, {"spec": {"workload": workload}}))
    assert has(refused, "spec.workload", "must not become or cease to be a server"), refused


def test_another_controller_can_be_named_at_the_start(server: Server) -> None:
    assert refusals(server, changed(JOB, {"spec.managedBy": "kueue.x-k8s.io/multikueue"})) == []


def test_the_workload_cannot_be_taken_away(server: Server, namespace: str) -> None:
    server.create(JOB, namespace)
    refused = server.refusals(lambda: server.patch(JOB, namespace, {"spec": {"workload": {"job": None}}}))
    assert has(refused, "spec.workload.job", "add it"), refused


def test_a_job_can_be_suspended_and_resumed(server: Server, namespace: str) -> None:
    server.create(changed(JOB, {"spec.suspend": True}), namespace)
    assert server.patch(JOB, namespace, {"spec": {"suspend": False}})["spec"]["suspend"] is False
    assert server.patch(JOB, namespace, {"spec": {"suspend": True}})["spec"]["suspend"] is True


def test_scale_obeys_the_bounds(server: Server, namespace: str) -> None:
    server.create(LATENCY, namespace)
    scaled = server.patch(LATENCY, namespace, {"spec": {"replicas": 4}}, "scale")
    assert scaled["kind"] == "Scale" and scaled["spec"]["replicas"] == 4
    refused = server.refusals(lambda: server.patch(LATENCY, namespace, {"spec": {"replicas": 9}}, "scale"))
    assert any("must be at least min" in refusal.message for refusal in refused), refused


def test_defaults_are_filled_in(server: Server) -> None:
    spec = server.create(JOB, dry_run=True)["spec"]
    assert spec["managedBy"] == "rightpool.dev/operator"
    assert spec["suspend"] is False
    assert spec["elasticity"] == {"state": "Sharded"}
    assert spec["placement"] == {"capacity": "OnDemand"}
    assert spec["targets"] == {"objective": "MinimizeCost", "budgetAction": "Warn"}
    assert spec["checkpoint"] == {"mode": "Signal", "signal": "SIGUSR1", "timeout": "120s"}
    assert spec["profiling"] == {"mode": "Auto", "trace": "Auto", "interval": "10s", "window": "5m"}
    moves = {"cooldown": "15m", "maxMoves": 4, "minSavings": "0.10", "requireApproval": False, "yield": "Never"}
    assert spec["adaptation"] == moves


def test_the_template_is_kept_whole(server: Server) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["example.com/x"]},
        "spec": {
            "serviceAccountName": "trainer",
            "nodeSelector": {"zone": "a"},
            "volumes": [{"name": "data", "emptyDir": {}}],
            "initContainers": [{"name": "warm", "image": "x", "restartPolicy": "Always"}],
            "containers": [
                {
                    "name": "trainer",
                    "image": "x",
                    "env": [{"name": "A", "value": "1"}],
                    "resources": {"requests": {"cpu": 2, "memory": "1Gi"}, "claims": [{"name": "net"}]},
                }
            ],
        },
    }
    created = server.create(changed(JOB, {"spec.workload.job.template": template}), dry_run=True)
    assert created["spec"]["workload"]["job"]["template"] == template


def test_a_variant_is_kept_with_what_it_removes(server: Server, namespace: str) -> None:
    """Fields of null are kept where they are read; those of the schema are no exception."""
    template = {
        "metadata": {"labels": {"stack": None}, "annotations": None},
        "spec": {
            "tolerations": None,
            "nodeSelector": {"zone": None, "$patch": "replace"},
            "priorityClassName": None,
            "volumes": [{"name": "shm", "$patch": "delete"}],
            "containers": [
                {
                    "name": "trainer",
                    "image": "jax",
                    "args": None,
                    "env": [{"name": "NCCL_DEBUG", "$patch": "delete"}],
                    "resources": {"limits": {"memory": None, "cpu": 4}, "requests": None},
                }
            ],
        },
    }
    variants = [{"vendor": "Google", "template": template}, {"vendor": "AMD", "template": {}}]
    asked = changed(JOB, {"spec.placement": {"variants": variants}})
    assert server.create(asked, namespace)["spec"]["placement"]["variants"] == variants
    stored = server.call("GET", server.path(JOB, namespace))
    assert stored["spec"]["placement"]["variants"] == variants


def test_the_largest_template_is_within_the_cost_of_the_rules(server: Server) -> None:
    resources = {"limits": {f"example.com/{'x' * 50}-{number}": 1 for number in range(32)}}
    many = [{"name": f"container-{number}", "image": "x", "resources": resources} for number in range(16)]
    template = {"spec": {"containers": many, "initContainers": many}}
    wide = changed(
        JOB,
        {
            "spec.workload.job.template": template,
            "spec.workload.job.chipContainer": "container-15",
            "spec.elasticity": {"maxChips": 64, "chipCounts": list(range(1, 65)), "batch": "Global"},
            "spec.placement": {
                "variants": [
                    {"vendor": vendor, "template": template}
                    for vendor in ("Google", "NVIDIA", "AMD", "AWS", "Intel", "CPU")
                ],
                "pools": {
                    "allow": [f"pool-{number:058}" for number in range(64)],
                    "deny": [f"deny-{number:058}" for number in range(64)],
                },
            },
        },
    )
    assert refusals(server, wide) == []


def test_spec_and_status_are_written_apart(server: Server, namespace: str) -> None:
    created = server.create({**JOB, "status": {"moves": 3}}, namespace)
    assert "status" not in created
    reported = server.patch(JOB, namespace, {"spec": {"suspend": True}, "status": {"moves": 3}}, "status")
    assert reported["status"] == {"moves": 3}
    assert reported["spec"]["suspend"] is False


def test_conditions_are_merged_by_type(server: Server, namespace: str) -> None:
    server.create(JOB, namespace)

    def condition(kind: str) -> Object:
        return {
            "type": kind,
            "status": "True",
            "reason": "Running",
            "message": "",
            "lastTransitionTime": "2026-03-01T12:00:00Z",
        }

    server.apply_status(JOB, namespace, "rightpool", {"conditions": [condition("Placed")]})
    both = server.apply_status(JOB, namespace, "another", {"conditions": [condition("Audited")]})
    assert [entry["type"] for entry in both["status"]["conditions"]] == ["Placed", "Audited"]


def test_a_condition_without_a_reason_is_refused(server: Server, namespace: str) -> None:
    server.create(JOB, namespace)
    wrong = {"conditions": [{"type": "Placed", "status": "Yes", "reason": "", "message": ""}]}
    refused = server.refusals(lambda: server.apply_status(JOB, namespace, "rightpool", wrong))
    assert {"status.conditions[0].status", "status.conditions[0].lastTransitionTime"} <= {
        refusal.field for refusal in refused
    }


def test_columns_are_shown(server: Server, namespace: str) -> None:
    server.create(JOB, namespace)
    placed = {"type": "Placed", "status": "False", "reason": "Starting", "message": "1 of 2 pods run"}
    status = {
        "conditions": [{**placed, "lastTransitionTime": "2026-11-21T10:00:00Z"}],
        "placement": {"revision": 3, "pool": "a10g", "chips": 8, "replicas": 2},
        "profile": {"bottleneck": "Compute", "samplesPerSecond": "1180"},
        "cost": {"chips": 8, "perHour": "8.0482", "perMillion": "1.9", "saved": "96.09871234"},
        "summary": {"bottleneck": "MemoryBandwidth", "perHour": "8.05", "perMillion": "1.90", "saved": "96.10"},
    }
    server.apply_status(JOB, namespace, "rightpool", status)
    table = server.call("GET", server.path(JOB, namespace), accept=AS_TABLE)
    assert [column["name"] for column in table["columnDefinitions"] if column["priority"] == 0] == [
        "Name",
        "Status",
        "Pool",
        "Chips",
        "Bottleneck",
        "$/h",
        "$/M",
        "Saved",
        "Targets",
        "Done",
        "Would-go-to",
        "Saves",
        "Phase",
        "Age",
    ]
    assert table["rows"][0]["cells"][:8] == ["bert", "Starting", "a10g", 8, "MemoryBandwidth", "8.05", "1.90", "96.10"]


def test_names_of_the_kinds(server: Server) -> None:
    found = server.call("GET", "/apis/rightpool.dev/v1alpha1")["resources"]
    kinds = {entry["name"]: entry for entry in found}
    assert {name: kinds[name]["shortNames"] for name in kinds if "/" not in name} == {
        "profiledjobs": ["pj"],
        "acceleratorpools": ["apool"],
        "placementpolicies": ["ppol"],
    }
    assert all("ml" in entry["categories"] for entry in found if "/" not in entry["name"])
    assert {f"{name}/status" for name in ("profiledjobs", "acceleratorpools", "placementpolicies")} <= kinds.keys()
    assert "profiledjobs/scale" in kinds


def example_objects() -> list[Object]:
    files = sorted(EXAMPLES.glob("*.yaml"))
    return [obj for file in files for obj in yaml.safe_load_all(file.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("obj", example_objects(), ids=lambda obj: f"{obj['kind']} {obj['metadata']['name']}")
def test_examples_are_admitted(server: Server, obj: Object) -> None:
    assert refusals(server, obj) == []
