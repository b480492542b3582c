"""JobKind and build_service: which fields a placement adds to a user's template, and which are kept."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.placement import CapacityType
from rightpool.workloads.kinds.job import JOB
from rightpool.workloads.names import child_name, service_name, workload_hash
from rightpool.workloads.pod_set import PodSet
from rightpool.workloads.service import build_service
from rightpool.workloads.template import InvalidTemplate
from tests.unit.workloads.samples import GPU_POOL, INJECTION, OWNER, TPU_POOL, Work, env_of, plain, ref, restricted


def job(template: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    arguments = {"queue_name": None, "ref": ref(), "pool": GPU_POOL, "injection": None, "suspend": False, **options}
    return JOB.build(OWNER, Work(plain() if template is None else template), **arguments)


def pod_of(built: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = built["spec"]["template"]["spec"]
    return spec


def test_an_indexed_job_of_one_pod_for_each_replica() -> None:
    built = job()
    assert built["metadata"]["name"] == "bert-r3"
    assert built["metadata"]["namespace"] == "research"
    spec = built["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 2, 2)
    assert spec["backoffLimit"] == 12
    assert spec["suspend"] is False
    [owner] = built["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (OWNER.uid, True, True)


def test_what_the_user_says_of_failures_is_the_childs() -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    work = Work(plain(), backoff_limit=1, active_deadline_seconds=3600, failure_rules=(rule,))
    spec = JOB.build(OWNER, work, None, ref(), GPU_POOL, None)["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (2, 3600), "each of two replicas may fail once"
    mine, ours = spec["podFailurePolicy"]["rules"]
    assert mine == rule
    assert ours["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert "ttlSecondsAfterFinished" not in spec, "a child that is gone before its end is recorded is started anew"


def test_the_end_of_the_log_is_kept_where_the_user_says_nothing_else() -> None:
    template = plain()
    template["spec"]["containers"].append({"name": "logger", "image": "x", "terminationMessagePolicy": "File"})
    template["spec"]["initContainers"] = [{"name": "fetch", "image": "x"}]
    built = pod_of(JOB.build(OWNER, Work(template, "trainer"), None, ref(), GPU_POOL, None))
    policies = [c["terminationMessagePolicy"] for c in (*built["containers"], *built["initContainers"])]
    assert policies == ["FallbackToLogsOnError", "File", "FallbackToLogsOnError"]


def test_our_labels_override_the_users() -> None:
    template = plain()
    template["metadata"] = {"labels": {"team": "nlp", "rightpool.dev/revision": "99", "kueue.x-k8s.io/queue-name": "q"}}
    built = job(template)
    for labels in (built["metadata"]["labels"], built["spec"]["template"]["metadata"]["labels"]):
        assert labels["team"] == "nlp"
        assert labels["rightpool.dev/profiledjob"] == "bert"
        assert labels["rightpool.dev/revision"] == "3"
        assert labels["rightpool.dev/pool"] == "a10g"
        assert labels["app.kubernetes.io/managed-by"] == "rightpool"
    assert "kueue.x-k8s.io/queue-name" not in built["metadata"]["labels"]


def test_only_the_chip_container_requests_chips() -> None:
    template = plain(resources={"requests": {"cpu": "4"}})
    template["spec"]["containers"].append({"name": "logger", "image": "busybox"})
    built = JOB.build(OWNER, Work(template, "trainer"), None, ref(), GPU_POOL, INJECTION, False)
    trainer, logger = pod_of(built)["containers"]
    assert trainer["resources"] == {
        "requests": {"cpu": "4", "nvidia.com/gpu": "4"},
        "limits": {"nvidia.com/gpu": "4"},
    }
    assert "resources" not in logger
    for container in pod_of(built)["initContainers"]:
        assert "nvidia.com/gpu" not in str(container["resources"])


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "google.com/tpu", "amd.com/gpu"])
def test_a_template_that_asks_for_chips_itself_is_refused(resource: str) -> None:
    with pytest.raises(InvalidTemplate, match=resource):
        job(plain(resources={"limits": {resource: 1}}))


def test_pods_select_the_pools_nodes() -> None:
    template = plain()
    template["spec"]["nodeSelector"] = {"zone": "b"}
    template["spec"]["tolerations"] = [{"key": "own", "operator": "Exists"}]
    pod = pod_of(job(template))
    assert pod["nodeSelector"] == {"zone": "b", **GPU_POOL.node_selector}
    assert pod["tolerations"] == [
        {"key": "own", "operator": "Exists"},
        {"key": "gpu", "operator": "Exists"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    ]


def test_a_node_selector_that_contradicts_the_pool_is_refused_by_name() -> None:
    template = plain()
    template["spec"]["nodeSelector"] = {"node.kubernetes.io/instance-type": "p4d.24xlarge"}
    with pytest.raises(InvalidTemplate, match=r"instance-type=p4d.24xlarge.*pool a10g"):
        job(template)


def test_a_subdomain_of_its_own_is_refused() -> None:
    """MASTER_ADDR followed it and the Service did not, so that all ranks waited for ever."""
    template = plain()
    template["spec"]["subdomain"] = "my-ranks"
    with pytest.raises(InvalidTemplate, match=r"template.spec.subdomain .* remove it"):
        job(template)


def test_a_leader_that_ends_may_end_the_job() -> None:
    policy = {"rules": [{"succeededIndexes": "0"}]}
    built = JOB.build(OWNER, Work(plain(), success_policy=policy), None, ref(), GPU_POOL, None)
    assert built["spec"]["successPolicy"] == policy
    assert "successPolicy" not in job()["spec"]


def test_the_users_disruption_and_restart_fields_are_kept() -> None:
    template = plain()
    template["metadata"] = {"annotations": {"karpenter.sh/do-not-disrupt": "false"}}
    template["spec"].update(restartPolicy="OnFailure")
    built = job(template)
    annotations = built["spec"]["template"]["metadata"]["annotations"]
    assert annotations["karpenter.sh/do-not-disrupt"] == "false"
    assert annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
    assert pod_of(built)["restartPolicy"] == "OnFailure"
    assert "podFailurePolicy" not in built["spec"]


def test_a_drained_node_does_not_count_as_a_failure() -> None:
    [rule] = job()["spec"]["podFailurePolicy"]["rules"]
    assert rule == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def test_a_queued_job_is_created_suspended_and_left_to_kueue() -> None:
    built = job(queue_name="research")
    assert built["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "research"
    assert built["spec"]["suspend"] is True
    assert job(suspend=True)["spec"]["suspend"] is True


class TestRendezvous:
    def test_torchrun_and_jax_find_the_first_pod(self) -> None:
        env = env_of(pod_of(job())["containers"][0])
        leader = "bert-r3-0.bert-r3.research.svc"
        assert env["PET_NNODES"] == "2"
        assert env["PET_NPROC_PER_NODE"] == "4"
        assert env["PET_MASTER_ADDR"] == env["MASTER_ADDR"] == leader
        assert env["PET_MASTER_PORT"] == env["MASTER_PORT"] == "29500"
        assert env["WORLD_SIZE"] == env["JAX_NUM_PROCESSES"] == "2"
        assert env["JAX_COORDINATOR_ADDRESS"] == f"{leader}:8476"
        for name in ("PET_NODE_RANK", "RANK", "JAX_PROCESS_ID"):
            path = env[name]["valueFrom"]["fieldRef"]["fieldPath"]
            assert path == "metadata.annotations['batch.kubernetes.io/job-completion-index']"

    def test_a_single_pod_is_its_own_leader_and_needs_no_service(self) -> None:
        single = ref(chips=4, replicas=1)
        env = env_of(pod_of(job(ref=single))["containers"][0])
        assert env["MASTER_ADDR"] == "127.0.0.1"
        assert env["PET_NPROC_PER_NODE"] == "4"
        assert JOB.hosts(Work(plain()), "bert-r3", 1) is None

    def test_what_the_user_sets_is_never_overridden(self) -> None:
        template = plain(env=[{"name": "MASTER_PORT", "value": "1"}, {"name": "URL", "value": "tcp://$(MASTER_ADDR)"}])
        container = pod_of(job(template))["containers"][0]
        names = [variable["name"] for variable in container["env"]]
        assert names.count("MASTER_PORT") == 1
        assert env_of(container)["MASTER_PORT"] == "1"
        assert names.index("MASTER_ADDR") < names.index("URL"), "a variable can only refer to those above it"

    def test_a_slice_of_several_hosts_numbers_its_workers(self) -> None:
        env = env_of(pod_of(job(ref=ref(16, 4, pool="v5e"), pool=TPU_POOL))["containers"][0])
        hosts = env["TPU_WORKER_HOSTNAMES"].split(",")
        assert hosts == [f"bert-r3-{index}.bert-r3.research.svc" for index in range(4)]
        assert "valueFrom" in env["TPU_WORKER_ID"]

    @pytest.mark.parametrize(("chips", "replicas"), [(32, 8), (4, 1)])
    def test_other_sizes_set_no_libtpu_variables(self, chips: int, replicas: int) -> None:
        env = env_of(pod_of(job(ref=ref(chips, replicas, pool="v5e"), pool=TPU_POOL))["containers"][0])
        assert "TPU_WORKER_ID" not in env

    def test_the_service_selects_this_revisions_pods_before_they_are_ready(self) -> None:
        hosts = JOB.hosts(Work(plain()), "bert-r3", 2)
        assert hosts is not None
        service = build_service(OWNER, ref(), hosts, OWNER.reference)
        assert service["metadata"]["name"] == "bert-r3" == pod_of(job())["subdomain"]
        assert service["spec"] == {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"rightpool.dev/profiledjob": "bert", "rightpool.dev/revision": "3"},
        }


class TestCapacity:
    AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"

    def terms(self, built: dict[str, Any]) -> list[dict[str, Any]]:
        terms: list[dict[str, Any]] = pod_of(built)["affinity"]["nodeAffinity"][self.AFFINITY]["nodeSelectorTerms"]
        return terms

    def test_on_demand_excludes_all_spot_labels(self) -> None:
        [term] = self.terms(job())
        assert {expression["operator"] for expression in term["matchExpressions"]} == {"NotIn"}
        assert "karpenter.sh/capacity-type" in {expression["key"] for expression in term["matchExpressions"]}

    def test_spot_requires_any_spot_label_and_tolerates_spot_taints(self) -> None:
        built = job(ref=ref(capacity=CapacityType.SPOT))
        assert all(len(term["matchExpressions"]) == 1 for term in self.terms(built))
        assert {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]} in [
            term["matchExpressions"][0] for term in self.terms(built)
        ]
        assert "kubernetes.azure.com/scalesetpriority" in {
            toleration["key"] for toleration in pod_of(built)["tolerations"]
        }

    def test_the_users_affinity_terms_are_combined_with_ours(self) -> None:
        template = plain()
        mine = [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}], "matchFields": []}
            for zone in "ab"
        ]
        template["spec"]["affinity"] = {
            "nodeAffinity": {self.AFFINITY: {"nodeSelectorTerms": mine}},
            "podAntiAffinity": {"x": 1},
        }
        built = job(template, ref=ref(capacity=CapacityType.SPOT))
        terms = self.terms(built)
        assert len(terms) == 8
        for term in terms:
            assert term["matchExpressions"][0]["key"] == "zone"
            assert len(term["matchExpressions"]) == 2
            assert term["matchFields"] == []
        assert pod_of(built)["affinity"]["podAntiAffinity"] == {"x": 1}

    def test_a_pool_of_one_capacity_type_needs_no_affinity(self) -> None:
        pool = replace(GPU_POOL, node_selector={"karpenter.sh/capacity-type": "spot"})
        assert "affinity" not in pod_of(job(pool=pool))

    def test_a_node_selector_against_the_placement_is_refused(self) -> None:
        template = plain()
        template["spec"]["nodeSelector"] = {"cloud.google.com/gke-spot": "true"}
        with pytest.raises(InvalidTemplate, match=r"placement\.capacity"):
            job(template)
        assert job(template, ref=ref(capacity=CapacityType.SPOT))


class TestNames:
    def test_child_and_service(self) -> None:
        assert child_name("bert", 12) == "bert-r12"
        assert service_name("bert-r12") == "bert-r12"
        assert service_name("7b-r1") == "pj-7b-r1", "the name of a Service begins with a letter"

    @pytest.mark.parametrize("name", ["a" * 60, "a.b", "Bert", "-a", ""])
    def test_names_that_are_invalid_in_host_names_are_refused(self, name: str) -> None:
        with pytest.raises(InvalidTemplate, match="name"):
            JOB.build(replace(OWNER, name=name), Work(plain()), None, ref(), GPU_POOL, None)

    def test_the_longest_name_that_fits(self) -> None:
        built = JOB.build(replace(OWNER, name="a" * 58), Work(plain()), None, ref(), GPU_POOL, None)
        assert len(built["metadata"]["name"] + "-1") == 63

    def test_the_hash_changes_with_the_meaning_of_a_template_only(self) -> None:
        template = restricted(args=["é", "ü"])
        same = {"spec": dict(reversed(template["spec"].items())), "metadata": None}
        worker = PodSet("worker", template)
        made_of = workload_hash([worker])
        assert made_of == workload_hash([worker._replace(template=same)])
        assert made_of != workload_hash([worker._replace(chip_container="trainer")])
        assert made_of != workload_hash([worker._replace(template=restricted(args=["é"]))])
        assert made_of == workload_hash([worker._replace(chips=4, pods=3)]), "the operator sets them"
        assert workload_hash([PodSet("worker", {"spec": {}})]) == "fec14d2d4f70835b", "stored in statuses"

    def test_the_hash_is_over_all_pod_sets(self) -> None:
        worker, driver = PodSet("worker", plain()), PodSet("driver", plain(), chips=0)
        made_of = workload_hash([worker, driver])
        assert made_of == workload_hash([driver, worker])
        edits = [driver._replace(pods=2), driver._replace(template=plain(args=["-v"])), driver._replace(name="head")]
        assert made_of not in {workload_hash([worker]), *(workload_hash([worker, edit]) for edit in edits)}


class TestWrongTemplates:
    @pytest.mark.parametrize(
        ("template", "field"),
        [
            ({}, "containers"),
            ({"spec": None}, "containers"),
            ({"spec": []}, "template.spec"),
            ({"spec": {"containers": []}}, "containers"),
            ({"spec": {"containers": [None]}}, r"containers\[0\]"),
            ({"spec": {"containers": [{"image": "x"}]}}, r"containers\[0\].name"),
            ({"spec": {"containers": "trainer"}}, "containers"),
            ({**plain(), "metadata": "x"}, "metadata"),
            ({**plain(), "metadata": {"labels": ["a"]}}, "metadata.labels"),
            (plain(env="x"), "env"),
            (plain(env=[{"value": "1"}]), r"env\[0\].name"),
            (plain(env=[{"name": "PYTHONPATH", "value": 3}]), "PYTHONPATH"),
            (plain(resources=[1]), "resources"),
            (plain(resources={"limits": "4"}), "limits"),
            (plain(volumeMounts={"a": 1}), "volumeMounts"),
            (plain(volumeMounts=[{"name": "x", "mountPath": "/tmp/rightpool/"}]), "/tmp/rightpool"),
            (plain(args=[float("nan")]), "JSON"),
            (plain(args=[object()]), "JSON"),
            (plain(args=["\ud800"]), "JSON"),
            ({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}, "chipContainer"),
            ({"spec": {"containers": [{"name": "rightpool-profiler"}]}}, "rightpool-profiler"),
            ({"spec": {"containers": [{"name": "a"}], "nodeSelector": []}}, "nodeSelector"),
            ({"spec": {"containers": [{"name": "a"}], "volumes": [{"name": "rightpool-shared"}]}}, "rightpool-shared"),
        ],
    )
    def test_the_refusal_names_the_field(self, template: dict[str, Any], field: str) -> None:
        with pytest.raises(InvalidTemplate, match=field):
            job(template, injection=INJECTION)

    def test_a_deeply_nested_template(self) -> None:
        deep: dict[str, Any] = {}
        for _ in range(100_000):
            deep = {"a": deep}
        with pytest.raises(InvalidTemplate, match="nested"):
            job({**plain(), "x": deep})
        with pytest.raises(InvalidTemplate, match="nested"):
            workload_hash([PodSet("worker", {"x": deep})])

    def test_null_fields_are_absent_ones(self) -> None:
        null = {
            "metadata": None,
            "spec": {
                "containers": [{"name": "trainer", "env": None, "resources": None, "volumeMounts": None}],
                "initContainers": None,
                "volumes": None,
                "nodeSelector": None,
                "affinity": None,
                "securityContext": None,
                "tolerations": None,
            },
        }
        absent = {"spec": {"containers": [{"name": "trainer"}]}}
        assert job(null, injection=INJECTION) == job(absent, injection=INJECTION)

    def test_the_users_template_is_not_changed(self) -> None:
        template = restricted(env=[{"name": "PYTHONPATH", "value": "/app"}])
        before = copy.deepcopy(template)
        job(template, injection=INJECTION)
        assert template == before
