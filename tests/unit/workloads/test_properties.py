"""Properties of the builders, over templates as users may write them and over values that no user would."""

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rightpool import contract
from rightpool.api.placement import CapacityType
from rightpool.workloads.injection import inject
from rightpool.workloads.kinds.job import JOB
from rightpool.workloads.names import child_name, service_name, workload_hash
from rightpool.workloads.owner import Owner
from rightpool.workloads.pod_set import PodSet
from rightpool.workloads.resources import is_guaranteed
from rightpool.workloads.service import build_service
from rightpool.workloads.template import InvalidTemplate, normalised
from tests.unit.workloads.pod_security import violations
from tests.unit.workloads.samples import GPU_POOL, INJECTION, OWNER, TPU_POOL, Work, env_of, plain, ref

# Time limits would measure the machine, which other tests share.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

LETTERS, INNER = "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz0123456789"
# Of the pattern [a-z]([-a-z0-9]{0,20}[a-z0-9])?, which Hypothesis would take ten times as long for.
names = st.builds(
    "{}{}".format,
    st.sampled_from(LETTERS),
    st.just("") | st.builds("{}{}".format, st.text(f"-{INNER}", max_size=20), st.sampled_from(INNER)),
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
env_names = st.one_of(
    names, st.sampled_from(["PYTHONPATH", "MASTER_ADDR", "RANK", "PET_NNODES", "JAX_PROCESS_ID", "RIGHTPOOL_CHIPS"])
)
variables: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"name": env_names, "value": texts}),
    st.fixed_dictionaries({"name": env_names, "valueFrom": st.just({"fieldRef": {"fieldPath": "metadata.name"}})}),
)
resources: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.just({"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"cpu": "2", "memory": "4Gi"}}),
    st.fixed_dictionaries({"requests": st.dictionaries(st.sampled_from(["cpu", "memory"]), st.just("1"))}),
)
security = st.just({"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}})


@st.composite
def containers(draw: st.DrawFn, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "image": draw(texts),
        "args": draw(st.lists(texts, max_size=3)),
        "env": draw(st.lists(variables, max_size=5, unique_by=lambda variable: str(variable["name"]))),
        "resources": copy.deepcopy(draw(resources)),
        "securityContext": copy.deepcopy(draw(security)),
        "volumeMounts": draw(st.lists(st.just({"name": "data", "mountPath": "/data"}), max_size=1)),
    }


@st.composite
def templates(draw: st.DrawFn) -> dict[str, Any]:
    """Templates that keep the restricted standard; the first container, `main`, gets the chips."""
    others = draw(st.lists(names.filter(lambda name: name != "main"), unique=True, max_size=4))
    spec: dict[str, Any] = {
        "containers": [draw(containers("main"))],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": draw(st.lists(st.just({"name": "data", "emptyDir": {}}), max_size=1)),
        "nodeSelector": draw(st.dictionaries(names, texts, max_size=2)),
        "tolerations": draw(st.lists(st.fixed_dictionaries({"key": names}), max_size=2)),
    }
    if draw(st.booleans()):
        spec["securityContext"]["runAsUser"] = draw(st.integers(1, 70000))
    for name in others:
        spec.setdefault(draw(st.sampled_from(["containers", "initContainers"])), []).append(draw(containers(name)))
    metadata = {key: draw(st.dictionaries(names, texts, max_size=3)) for key in ("labels", "annotations")}
    return {"metadata": metadata, "spec": spec}


sizes = st.tuples(st.integers(1, 16), st.integers(1, 64)).map(lambda pair: (pair[0] * pair[1], pair[1]))
placements = st.builds(
    lambda size, revision, capacity: ref(size[0], size[1], revision, capacity=capacity),
    sizes,
    st.integers(1, 999),
    st.sampled_from(CapacityType),
)


def survives(before: Any, after: Any) -> bool:
    """All that was written is still there: in objects by field, in lists of named things by name, else in order."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(key in after and survives(before[key], after[key]) for key in before)
    if isinstance(before, list):
        if before and all(isinstance(item, dict) and "name" in item for item in before):
            kept = [item for item in after if item["name"] in {item["name"] for item in before}]
            return len(kept) == len(before) and all(map(survives, before, kept))
        rest = iter(after)
        return all(item in rest for item in before)
    return bool(before == after)


def without_python_path(template: dict[str, Any]) -> dict[str, Any]:
    copied = copy.deepcopy(template)
    for container in copied["spec"]["containers"]:
        container["env"] = [variable for variable in container["env"] if variable["name"] != "PYTHONPATH"]
    return copied


@unhurried
@given(templates(), placements)
def test_what_is_built_of_any_template(template: dict[str, Any], placement: Any) -> None:
    """All of one template, since to draw one takes most of the time."""
    before = copy.deepcopy(template)
    job = JOB.build(OWNER, Work(template, "main"), None, placement, GPU_POOL, INJECTION)
    bare = JOB.build(OWNER, Work(template, "main"), None, placement, GPU_POOL, None)
    slices = JOB.build(OWNER, Work(template, "main"), None, placement, TPU_POOL, INJECTION)
    for made in (job, bare):
        kept = without_python_path(made["spec"]["template"])
        assert survives(without_python_path(template), kept), "the user's fields are kept"
    assert violations(template) == violations(job["spec"]["template"]) == [], "what is restricted stays restricted"
    assert is_guaranteed(job["spec"]["template"]) == is_guaranteed(template), "the class of service is kept"
    spec = slices["spec"]["template"]["spec"]
    for container in [*spec["initContainers"], *spec["containers"]]:
        found = [variable["name"] for variable in container["env"]]
        assert len(found) == len(set(found)), "no variable is duplicated"
    queued = [JOB.build(OWNER, Work(template, "main"), "q", placement, GPU_POOL, INJECTION) for _ in range(2)]
    assert queued[0] == queued[1]
    assert template == before, "no argument is changed"
    once = inject(template, "main", INJECTION, 1)
    assert inject(once, "main", INJECTION, 1) == once
    assert_the_python_path_is_kept(template, once)


def assert_the_python_path_is_kept(template: dict[str, Any], injected: dict[str, Any]) -> None:
    users = env_of(template["spec"]["containers"][0]).get("PYTHONPATH")
    result = env_of(injected["spec"]["containers"][0])
    if users is None:
        assert "PYTHONPATH" not in result
        assert result["PYTHONUSERBASE"] == contract.USER_BASE_DIR
    elif users == "":
        assert result["PYTHONPATH"] == contract.AGENT_DIR
    elif isinstance(users, str):
        assert result["PYTHONPATH"] == f"{contract.AGENT_DIR}:{users}"
    else:
        assert result["PYTHONPATH"] == users


@unhurried
@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,70}[a-z0-9])?", fullmatch=True), placements)
def test_names_fit_or_are_refused(name: str, placement: Any) -> None:
    owner, replicas = Owner("ns", name, "uid"), placement.placement.replicas
    try:
        JOB.build(owner, Work(plain()), None, placement, GPU_POOL, None)
    except InvalidTemplate:
        assert len(name) > 50
        return
    child = child_name(name, placement.revision)
    hosts = JOB.hosts(Work(plain()), child, replicas)
    assert len(f"{child}-{replicas - 1}") <= 63
    assert len(service_name(child)) <= 63
    assert (hosts is None) is (replicas == 1)
    if hosts is not None:
        service = build_service(owner, placement, hosts, owner.reference)
        assert service["metadata"]["name"] == service_name(child)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PLACES = [
    ("metadata",),
    ("metadata", "labels"),
    ("metadata", "annotations"),
    ("spec",),
    *[
        ("spec", key)
        for key in (
            "containers",
            "initContainers",
            "volumes",
            "nodeSelector",
            "tolerations",
            "affinity",
            "securityContext",
            "resources",
            "subdomain",
            "restartPolicy",
            "hostNetwork",
        )
    ],
    *[("spec", "containers", 0, key) for key in ("name", "env", "resources", "volumeMounts", "securityContext")],
    ("spec", "containers", 0, "resources", "limits"),
    ("spec", "containers", 0, "env", 0),
    ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
    ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"),
]


@unhurried
@given(st.sampled_from(PLACES), json_values, placements)
def test_any_template_is_built_or_refused_with_a_message(place: tuple[Any, ...], value: Any, placement: Any) -> None:
    template = plain(env=[{"name": "A", "value": "1"}], resources={"limits": {"cpu": "1"}}, volumeMounts=[])
    template["metadata"] = {}
    template["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}
    target: Any = template
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    try:
        JOB.build(OWNER, Work(template), None, placement, GPU_POOL, INJECTION)
        workload_hash([PodSet("worker", template)])
    except InvalidTemplate as refusal:
        assert refusal.message


@unhurried
@given(json_values)
def test_normalising_is_stable(value: Any) -> None:
    try:
        once = normalised({"spec": value})
    except InvalidTemplate:
        return
    assert normalised(once) == once


def test_a_template_of_a_megabyte() -> None:
    template = plain(args=["é" * 1000] * 1000)
    built = JOB.build(OWNER, Work(template), None, ref(), GPU_POOL, INJECTION)
    assert built["spec"]["template"]["spec"]["containers"][0]["args"] == template["spec"]["containers"][0]["args"]
