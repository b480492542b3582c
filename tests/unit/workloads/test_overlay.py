"""A variant laid over a pod template: what is merged, what is replaced, and what is removed."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.workloads.overlay import overlaid
from rightpool.workloads.template import InvalidTemplate, normalised
from tests.unit.workloads.test_properties import templates, unhurried

GPU: dict[str, Any] = {
    "metadata": {"labels": {"team": "research", "stack": "cuda"}, "annotations": {"note": "x"}},
    "spec": {
        "containers": [
            {
                "name": "trainer",
                "image": "bert-cuda:1",
                "command": ["torchrun", "train.py"],
                "args": ["--fast"],
                "env": [
                    {"name": "NCCL_DEBUG", "value": "INFO"},
                    {"name": "TOKEN", "value": "plain"},
                    {"name": "SEED", "value": "1"},
                ],
                "resources": {"requests": {"cpu": "8", "memory": "32Gi"}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "shm", "mountPath": "/dev/shm"}],
            },
            {"name": "logs", "image": "logs:1"},
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "on-a"}}, {"name": "shm", "emptyDir": {}}],
        "nodeSelector": {"zone": "a", "disk": "ssd"},
        "tolerations": [{"key": "gpu"}],
    },
}


def laid(**spec: Any) -> dict[str, Any]:
    pod: dict[str, Any] = overlaid(GPU, {"spec": spec})["spec"]
    return pod


def trainer(**fields: Any) -> dict[str, Any]:
    """The container of that name, with the overlay's fields of it laid over."""
    found: dict[str, Any] = laid(containers=[{"name": "trainer"} | fields])["containers"][0]
    return found


def test_containers_are_merged_by_name_and_the_rest_of_them_stays() -> None:
    pod = laid(containers=[{"name": "trainer", "image": "bert-tpu:1", "command": ["python", "train_jax.py"]}])
    first, second = pod["containers"]
    assert (first["image"], first["command"], first["args"]) == (
        "bert-tpu:1",
        ["python", "train_jax.py"],
        ["--fast"],
    )
    assert first["resources"] == GPU["spec"]["containers"][0]["resources"]
    assert second == GPU["spec"]["containers"][1]
    assert pod["nodeSelector"] == GPU["spec"]["nodeSelector"]


def test_a_container_of_another_name_comes_last() -> None:
    pod = laid(containers=[{"name": "proxy", "image": "p"}], initContainers=[{"name": "fetch", "image": "f"}])
    assert [container["name"] for container in pod["containers"]] == ["trainer", "logs", "proxy"]
    assert pod["initContainers"] == [{"name": "fetch", "image": "f"}]


def test_variables_keep_their_order_and_have_one_source() -> None:
    secret = {"secretKeyRef": {"name": "tokens", "key": "hub"}}
    env = trainer(
        env=[
            {"name": "PJRT_DEVICE", "value": "TPU"},
            {"name": "TOKEN", "valueFrom": secret},
            {"name": "NCCL_DEBUG", "$patch": "delete"},
        ]
    )["env"]
    assert env == [
        {"name": "TOKEN", "valueFrom": secret},
        {"name": "SEED", "value": "1"},
        {"name": "PJRT_DEVICE", "value": "TPU"},
    ]


def test_a_volume_has_one_source_and_mounts_are_merged_by_path() -> None:
    volumes = laid(volumes=[{"name": "data", "emptyDir": {}}, {"name": "more", "emptyDir": {}}])["volumes"]
    assert volumes == [
        {"name": "data", "emptyDir": {}},
        {"name": "shm", "emptyDir": {}},
        {"name": "more", "emptyDir": {}},
    ]
    same = laid(volumes=[{"name": "data", "persistentVolumeClaim": {"readOnly": True}}])["volumes"]
    assert same[0] == {"name": "data", "persistentVolumeClaim": {"claimName": "on-a", "readOnly": True}}
    mounts = trainer(volumeMounts=[{"mountPath": "/dev/shm", "$patch": "delete"}, {"mountPath": "/data", "name": "b"}])
    assert mounts["volumeMounts"] == [{"name": "b", "mountPath": "/data"}]


def test_who_names_no_source_leaves_the_one_that_is_there() -> None:
    base = GPU["spec"]
    assert laid(volumes=[{"name": "data"}])["volumes"] == base["volumes"], "an empty volume would take its place"
    assert trainer(env=[{"name": "SEED"}])["env"] == base["containers"][0]["env"]
    assert trainer(env=[{"name": "SEED", "valueFrom": None}])["env"] == base["containers"][0]["env"]


def test_other_lists_are_replaced() -> None:
    assert laid(tolerations=[{"key": "tpu"}])["tolerations"] == [{"key": "tpu"}]
    assert trainer(args=[])["args"] == []


def test_null_removes_a_field() -> None:
    pod = laid(nodeSelector={"zone": None, "topology": "2x4"}, tolerations=None)
    assert pod["nodeSelector"] == {"disk": "ssd", "topology": "2x4"}
    assert "tolerations" not in pod
    assert "args" not in trainer(args=None)
    assert overlaid(GPU, {"metadata": {"labels": {"stack": None}}})["metadata"]["labels"] == {"team": "research"}
    assert trainer(securityContext={"runAsUser": 1, "runAsGroup": None})["securityContext"] == {"runAsUser": 1}


def test_directives_replace_and_delete() -> None:
    assert laid(nodeSelector={"$patch": "replace", "zone": "b"})["nodeSelector"] == {"zone": "b"}
    assert laid(nodeSelector={"$patch": "delete"})["nodeSelector"] == {}
    replaced = trainer(env=[{"$patch": "replace"}, {"name": "ONLY", "value": "1"}])["env"]
    assert replaced == [{"name": "ONLY", "value": "1"}]
    assert [c["name"] for c in laid(containers=[{"name": "logs", "$patch": "delete"}])["containers"]] == ["trainer"]


@pytest.mark.parametrize(
    ("overlay", "message"),
    [
        ({"spec": {"containers": [{"image": "x"}]}}, r"template\.spec\.containers\[0\]\.name is needed"),
        ({"spec": {"volumes": ["data"]}}, r"template\.spec\.volumes\[0\] must be an object"),
        (
            {"spec": {"containers": [{"name": "trainer", "volumeMounts": [{"name": "data"}]}]}},
            r"containers\[0\]\.volumeMounts\[0\]\.mountPath is needed",
        ),
        ({"spec": {"serviceAccountName": "admin"}}, r"template\.spec\.serviceAccountName must not be set in a variant"),
        ({"spec": {"serviceAccount": None}}, r"template\.spec\.serviceAccount must not be set in a variant"),
        ({"spec": {"automountServiceAccountToken": True}}, r"automountServiceAccountToken must not be set"),
        ({"spec": {"nodeSelector": {"$patch": "drop"}}}, r"nodeSelector\.\$patch must be delete or replace"),
    ],
)
def test_what_can_not_be_laid_over_anything_is_named(overlay: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidTemplate, match=message):
        overlaid(GPU, overlay)


# --- properties ------------------------------------------------------------------------------------------------------

keys = st.sampled_from(["a", "b", "trainer", "name", "zone"])
leaves = st.one_of(st.none(), st.integers(0, 3), st.text(max_size=3))
objects: st.SearchStrategy[Any] = st.recursive(
    leaves, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)), max_leaves=8
)
directives = st.sampled_from([{}, {}, {}, {"$patch": "delete"}, {"$patch": "replace"}])


def entries(key: str, fields: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    names = st.sampled_from(["main", "trainer", "data", "other"])
    made = st.builds(lambda name, more, how: more | {key: name} | how, names, fields, directives)
    return st.lists(
        st.one_of(made, st.just({"$patch": "replace"})), max_size=4, unique_by=lambda entry: str(entry.get(key))
    )


containers = entries(
    "name",
    st.fixed_dictionaries(
        {},
        optional={
            "image": leaves,
            "env": entries("name", st.fixed_dictionaries({}, optional={"value": leaves, "valueFrom": objects})),
            "volumeMounts": entries("mountPath", st.fixed_dictionaries({}, optional={"name": leaves})),
            "resources": st.dictionaries(keys, objects, max_size=2),
            "command": objects,
        },
    ),
)
pods = st.fixed_dictionaries(
    {},
    optional={
        "containers": containers,
        "initContainers": containers,
        "volumes": entries("name", st.fixed_dictionaries({}, optional={"emptyDir": objects, "hostPath": objects})),
        "nodeSelector": st.one_of(st.none(), st.builds(dict.__or__, st.dictionaries(keys, leaves), directives)),
        "tolerations": objects,
        "other": objects,
    },
)
overlays = st.fixed_dictionaries({}, optional={"metadata": st.dictionaries(keys, objects), "spec": pods, "c": objects})


@unhurried
@given(templates(), st.dictionaries(keys, st.one_of(st.integers(), st.text(), st.lists(st.integers())), max_size=4))
def test_what_an_overlay_does_not_name_stays(template: dict[str, Any], fields: dict[str, Any]) -> None:
    for nothing in ({}, {"spec": {}}, {"metadata": {"labels": {}}, "spec": {"containers": []}}):
        assert overlaid(template, nothing) == normalised(template)
    assert overlaid(template, template) == normalised(template)
    made, base = overlaid(template, {"spec": fields}), normalised(template)
    assert made["metadata"] == base["metadata"]
    assert made["spec"] == base["spec"] | fields


@unhurried
@given(templates(), overlays)
def test_laying_over_again_changes_nothing_and_no_argument_is_changed(
    template: dict[str, Any], overlay: dict[str, Any]
) -> None:
    before = copy.deepcopy((template, overlay))
    once = overlaid(template, overlay)
    assert overlaid(once, overlay) == once
    assert (template, overlay) == before
    assert normalised(once) == once, "no null is left"
