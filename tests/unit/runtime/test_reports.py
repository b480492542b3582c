"""Inputs that failed for other people: each is admitted, evaluated on the demo's pools and built, and does what is
right by its README."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.synthetic_fleet import NoPods
from devcluster import simulated
from rightpool.api.action import Action
from rightpool.api.altered import altered
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.api.status import ProfiledJobStatus
from rightpool.cluster.resources import NAMESPACES
from rightpool.contract import GROUP, LABEL_JOB, LABEL_REVISION, LABEL_ROLE
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.node_shapes import with_node_shapes
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.room import reservation
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.revision_state import PodFailure, RevisionState
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.reporting.candidate_texts import verdict_text
from rightpool.reporting.conditions.context import Context, Statement
from rightpool.reporting.conditions.placed import placed
from rightpool.reporting.status import draft_status
from rightpool.reporting.stored_job import StoredJob, read_job
from rightpool.runtime.act.children import Children
from rightpool.runtime.observe.facts import child_facts, node_facts, pod_facts
from rightpool.runtime.observe.pool_inventory import take_inventory
from rightpool.runtime.observe.revisions import revision_states, with_unmade, with_unseen
from rightpool.runtime.observe.store import Store
from rightpool.runtime.observe.usage import ChipUsage
from rightpool.runtime.observe.volumes import BoundJobs, volume_facts
from rightpool.workloads.kinds.registry import kind_of
from rightpool.workloads.template import InvalidTemplate
from tests.unit.planning.jobs import NOW, changed, find, fleet, judged, plan, reason
from tests.unit.planning.world import A10G, World
from tests.unit.prediction.fixtures import profile

Body = dict[str, Any]
POOLS = Path(__file__).parents[3] / "hack/demo/manifests/pools.yaml"
CPU_NODE = {
    "metadata": {"name": "node-0", "labels": {"kubernetes.io/hostname": "node-0"}},
    "status": {"allocatable": {"cpu": "2", "memory": "16Gi", "rightpool.dev/cpu-chip": "2"}},
}


class Reports:
    """The folder of inputs, and the pools that they are for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        kinds = ((simulated.A100, 2), (simulated.A10G, 4), (simulated.TPU_V5E, 4))
        self.nodes = {kind.node_name(n): kind.node(n) for kind, count in kinds for n in range(count)}
        self.nodes["node-0"] = CPU_NODE

    def names(self) -> set[str]:
        """The numbers of all inputs."""
        return {file.name[:2] for file in self._folder.glob("*.yaml")}

    def objects(self, name: str, kind: str) -> list[Body]:
        """Of one input."""
        (file,) = self._folder.glob(f"{name}-*.yaml")
        return [body for body in yaml.safe_load_all(file.read_text()) if body["kind"] == kind]

    def admitted(self, name: str, workload: Body | None = None, **sections: Any) -> StoredJob:
        """Its ProfiledJob with these changes, which has to be a valid one."""
        (body,) = self.objects(name, "ProfiledJob")
        body["spec"] |= sections
        body["spec"]["workload"]["job"] |= workload or {}
        about = {"uid": "uid-1", "generation": 1, "resourceVersion": "1", "creationTimestamp": "2027-01-01T00:00:00Z"}
        stored = read_job({**body, "metadata": body["metadata"] | about})
        assert stored.job.invalid is None
        return stored

    def label(self, nodes: str, **offered: str) -> None:
        """Nodes of this pool have other amounts allocatable."""
        for name, body in self.nodes.items():
            if name.startswith(nodes):
                body["status"]["allocatable"] = {**body["status"]["allocatable"], **offered}

    def pools(self, stored: StoredJob) -> dict[str, Pool]:
        """The demo's, with what the job asks of their nodes."""
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        facts = [node_facts({**body, "status": body["status"] | ready}) for body in self.nodes.values()]
        declared = [body for body in yaml.safe_load_all(POOLS.read_text()) if body["kind"] == "AcceleratorPool"]
        usage = ChipUsage(NoPods(), interval=math.inf)
        inventory = take_inventory(declared, facts, [], usage, load_catalog()).inventory
        return dict(with_node_shapes(inventory, facts, stored.asks))

    def bound(self, stored: StoredJob, volumes: list[Body]) -> StoredJob:
        """With volumes that are bound to its claims."""
        facts = [made for body in volumes if (made := volume_facts(body))]
        return BoundJobs().of({stored.job.key: stored}, facts)[stored.job.key]

    def seen(self, stored: StoredJob, where: Placement, *pods: Body, since: float = NOW - 600.0) -> Job:
        """The job when it was started there: its child is built, and these are its pods, but for their template."""
        job, ref = stored.job, revision(stored.job, where)
        manifest = build(job, ref, self.pools(stored)[where.pool])
        about = manifest["metadata"]
        owner = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "ProfiledJob", "name": job.key.name, "uid": job.uid}
        child = {**manifest, "metadata": about | {"uid": "job-1", "ownerReferences": [owner | {"controller": True}]}}
        facts = child_facts(kind_of(job.spec.workload), {**child, "spec": manifest["spec"] | {"suspend": False}})
        assert facts is not None
        found = [made for index, body in enumerate(pods) if (made := pod_facts(_pod(child, index, body)))]
        states = with_unseen(revision_states(job.uid, [facts], found), NOW)
        return changed(job, revision=altered(ref, created_at=since), revisions=states)


def _pod(child: Body, index: int, more: Body) -> Body:
    about, template = child["metadata"], child["spec"]["template"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": about["name"], "uid": about["uid"], "controller": True}
    labels = template["metadata"]["labels"]
    assert {LABEL_JOB, LABEL_REVISION, LABEL_ROLE} <= labels.keys()
    metadata = {"name": f"pod-{index}", "namespace": about["namespace"], "uid": f"pod-{index}"}
    made = {"labels": labels, "ownerReferences": [owner], "creationTimestamp": "2027-01-15T07:50:00Z"}
    return {"metadata": metadata | made, "spec": template["spec"] | more.get("spec", {}), "status": more["status"]}


def revision(job: Job, where: Placement) -> Revision:
    workload = job.spec.workload
    return Revision(1, where, job.workload_hash, workload.chips, workload.replicas, NOW - 86_400.0)


def running(job: Job, where: Placement, rate: float = 1000.0) -> Job:
    """It has run there for a day."""
    measured = profile(where.chips, rate, 0.01, chip_busy=0.3, memory_used=5e9, exposed_communication=0.02)
    state = RevisionState(1, True, active=where.replicas, running=where.replicas)
    ref = altered(revision(job, where), since=NOW - 86_400.0, cost_per_hour=20.28)
    return changed(job, revision=ref, revisions={1: state}, profile=measured)


CHILDREN = Children("profiler:1", b"k" * 32)


def build(job: Job, ref: Revision, pool: Pool, children: Children = CHILDREN) -> Body:
    return dict(children.build(job, ref, pool, suspend=True))


def containers(manifest: Body) -> dict[str, Body]:
    pod = manifest["spec"]["template"]["spec"]
    return {each["name"]: each for each in [*pod["containers"], *pod.get("initContainers", [])]}


def placed_condition(job: Job, assessment: Assessment | None = None) -> Statement:
    """The condition Placed."""
    return placed(job, Context(assessment, None, True, NOW))


HOME = Placement("a100", 4, 1)


@pytest.fixture
def reports(shared: Path) -> Reports:
    folder = shared / "fixtures" / "reports"
    if not folder.is_dir():
        pytest.skip("inputs after public reports are not here")
    return Reports(folder)


@pytest.mark.parametrize(
    ("name", "a10g", "a100", "why", "words"),
    [
        ("01", {}, {}, RejectionReason.NODE_SELECTOR, "nvidia.com/gpu.product In NVIDIA-A100-SXM4-80GB"),
        ("02", {"cpu": "48", "memory": "192Gi"}, {}, RejectionReason.NODE_RESOURCES, "Insufficient cpu: a pod"),
        (
            "03",
            {},
            {"vpc.amazonaws.com/efa": "4", "hugepages-2Mi": "10Gi"},
            RejectionReason.NODE_RESOURCES,
            "Insufficient ",
        ),
    ],
)
def test_a_running_job_is_not_sent_where_its_pods_can_never_be(
    reports: Reports, name: str, a10g: Mapping[str, str], a100: Mapping[str, str], why: RejectionReason, words: str
) -> None:
    stored = reports.admitted(name)
    reports.label("a10g", **a10g)
    reports.label("a100", **a100)
    pools = reports.pools(stored)
    assessment = judged(running(stored.job, HOME), pools)
    assert reason(assessment, "a10g") is why and words in verdict_text(find(assessment, "a10g"))
    assert assessment.decision.action is Action.KEEP
    assert build(stored.job, revision(stored.job, HOME), pools["a100"])
    started = judged(stored.job, pools).decision
    assert started.target is not None and started.target.pool == "a100"


def test_without_what_rules_it_out_the_job_would_go(reports: Reports) -> None:
    """Or the test above would hold for another reason."""
    stored = reports.admitted("02")
    decision = judged(running(stored.job, HOME), reports.pools(stored)).decision
    assert decision.action is Action.MOVE and decision.target is not None and decision.target.pool == "a10g"


def test_what_the_profiler_requests_is_the_pods(reports: Reports) -> None:
    stored = reports.admitted("02")
    for cpus, fits in (("64", False), ("64100m", True)):
        reports.label("a10g", cpu=cpus)
        assessment = judged(running(stored.job, HOME), reports.pools(stored))
        assert (reason(assessment, "a10g") is RejectionReason.NODE_RESOURCES) is not fits
    built = build(stored.job, revision(stored.job, HOME), reports.pools(stored)["a100"])
    asked = [each["resources"]["requests"].get("cpu", "0") for each in containers(built).values()]
    assert sorted(asked) == ["20m", "20m", "64"], "the installer ends before the program starts"
    assert ("cpu", 64_020) in stored.job.needs.requests
    assert ("cpu", 64_000) in reports.admitted("02", profiling={"mode": "Off"}).job.needs.requests


def test_a_volume_of_another_zone_rules_a_pool_out(reports: Reports) -> None:
    """Also of a variant, and until the volume is given back."""
    for name, body in reports.nodes.items():
        zone = "zone-b" if name.startswith("a10g") else "zone-a"
        body["metadata"]["labels"] = {**body["metadata"]["labels"], "topology.kubernetes.io/zone": zone}
    text = yaml.safe_dump(reports.objects("04", "PersistentVolume")).replace("ZONE", "zone-a")
    (volume,) = yaml.safe_load(text)
    plain = reports.admitted("04")
    stored = reports.bound(plain, [volume])
    job = running(stored.job, HOME)
    assessment = judged(job, reports.pools(stored))
    assert reason(assessment, "a10g") is RejectionReason.VOLUME_ELSEWHERE
    assert "topology.kubernetes.io/zone In zone-a" in verdict_text(find(assessment, "a10g"))
    assert assessment.decision.action is Action.KEEP
    for usable in ({**volume, "status": {"phase": "Released"}}, yaml.safe_load(text.replace("zone-a", "zone-b"))[0]):
        other = reports.bound(plain, [usable])
        assert judged(running(other.job, HOME), reports.pools(other)).decision.action is Action.MOVE


def test_a_refusal_of_pods_is_said_in_its_own_words(reports: Reports) -> None:
    stored = reports.admitted("08")
    where = Placement("a10g", 4, 1)
    words = "failed quota: compute: must specify limits.cpu for: rightpool-agent,rightpool-profiler"
    job = reports.seen(stored, where)
    assert "1 pod does not exist" in placed_condition(job).message
    job = changed(job, revisions=with_unmade(job.observed.revisions, job.state.revision, words))
    statement = placed_condition(job)
    assert statement.reason == Reason.PODS_REFUSED and statement.message.endswith(f": {words}")
    assert reservation(job) == (), "its chips are promised to others meanwhile"
    limited = Children("profiler:1", b"k" * 32, cpu_limit="100m")
    built = build(stored.job, revision(stored.job, where), reports.pools(stored)["a10g"], limited)
    assert all({"cpu", "memory"} <= each["resources"]["limits"].keys() for each in containers(built).values())


def test_a_namespace_that_gives_users_gets_containers_without_one(reports: Reports) -> None:
    stored = reports.admitted("09")
    ranged, where = Store(), Placement("a10g", 4, 1)
    annotations = {"openshift.io/sa.scc.uid-range": "1000670000/10000"}
    for name, notes in (("nb-scc", annotations), ("other", {})):
        about = {"name": name, "uid": name, "resourceVersion": "1", "annotations": notes}
        ranged.observe(NAMESPACES, "ADDED", {"metadata": about})
    pool = reports.pools(stored)["a10g"]
    children = Children("profiler:1", b"k" * 32, gives_users=ranged.gives_users)
    for namespace, user in (("nb-scc", None), ("other", 65532)):
        job = altered(stored.job, key=JobKey(namespace, stored.job.key.name))
        built = build(job, revision(job, where), pool, children)
        ours = [each for name, each in containers(built).items() if name != "trainer"]
        assert [each["securityContext"].get("runAsUser") for each in ours] == [user, user]


def test_a_tainted_node_that_the_template_tolerates_has_room(reports: Reports) -> None:
    behind = reports.nodes["a100-0"]
    behind["metadata"]["labels"]["team"] = "vision"
    behind["spec"]["taints"].append({"key": "dedicated", "value": "vision", "effect": "NoSchedule"})
    stored = reports.admitted("05")
    assessment = judged(stored.job, reports.pools(stored))
    assert assessment.decision.action is Action.START
    assert assessment.decision.target is not None and assessment.decision.target.pool == "a100"


def test_a_disruption_of_the_gang_is_no_failure_of_the_program(reports: Reports) -> None:
    world = World.fresh()
    world.job = changed(world.job, spec=reports.admitted("06").job.spec)
    world.rates = {"a10g": 900.0}
    world.placed(A10G, 900.0)
    began, child = world.now, world.children[1]
    child.disrupted_at = began
    world.live()
    world.cycle()
    child.failed, child.failures_allowed = True, 0
    child.pod_failures = (PodFailure(began - 60.0, began + 31.0),)
    world.settle()
    assert world.job.state.finished is None and world.children[2].running == 2
    assert world.job.state.avoid == ()


def test_a_scheduler_that_does_not_answer_is_told_at_once(reports: Reports) -> None:
    stored = reports.admitted("07")
    decision = judged(stored.job, reports.pools(stored)).decision
    assert decision.target is not None
    statement = placed_condition(reports.seen(stored, decision.target, {"status": {"phase": "Pending"}}))
    assert statement.reason == Reason.SCHEDULER_SILENT and "scheduler volcano" in statement.message


def test_a_container_that_outlives_the_program_is_named_with_the_remedy(reports: Reports) -> None:
    stored = reports.admitted("10")
    ended = {"name": "trainer", "state": {"terminated": {"exitCode": 0}}}
    proxy = {"name": "mesh-proxy", "state": {"running": {}}}
    status = {"phase": "Running", "containerStatuses": [ended, proxy], "conditions": []}
    job = reports.seen(stored, Placement("dev", 1, 1), {"spec": {"nodeName": "node-0"}, "status": status})
    assert "trainer has completed, and mesh-proxy runs on and holds the chips" in placed_condition(job).message
    assert "restartPolicy Always" in placed_condition(job).message


def test_a_subdomain_is_refused_with_the_remedy(reports: Reports) -> None:
    stored = reports.admitted("11")
    with pytest.raises(InvalidTemplate, match=r"template\.spec\.subdomain must not be set.*remove it"):
        build(stored.job, revision(stored.job, Placement("dev", 2, 2)), reports.pools(stored)["dev"])


def test_slices_are_numbered(reports: Reports) -> None:
    stored = reports.admitted("12")
    pools = reports.pools(stored)
    decision = judged(stored.job, pools).decision
    assert decision.target == Placement("tpu-v5e", 16, 2)
    trainer = containers(build(stored.job, revision(stored.job, decision.target), pools["tpu-v5e"]))["trainer"]
    variables: list[Body] = [one for one in trainer["env"] if one["name"].startswith("MEGASCALE_")]
    index = {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']", "apiVersion": "v1"}
    assert {one["name"]: one.get("value") or one["valueFrom"]["fieldRef"] for one in variables} == {
        "MEGASCALE_NUM_SLICES": "2",
        "MEGASCALE_SLICE_ID": index,
        "MEGASCALE_COORDINATOR_ADDRESS": "b11-multislice-r1-0.b11-multislice-r1.nb.svc",
    }
    assert len(variables) == 3, "those of the template are another controller's"


def test_slices_of_several_hosts_are_not_joined(reports: Reports) -> None:
    """No field of a pod numbers it within its slice."""
    for index in range(4):
        labels = reports.nodes[f"tpu-v5e-{index}"]["metadata"]["labels"]
        labels["cloud.google.com/gke-tpu-topology"] = "4x4"
        labels["cloud.google.com/gke-nodepool"] = f"slice-{index // 2}"
    one, two = (reports.admitted("12", {"replicas": replicas}, placement={}) for replicas in (2, 4))
    pools = {name: pool for name, pool in reports.pools(one).items() if pool.hosts_per_slice == 2}
    (name,) = pools
    assert pools[name].total == 32
    assert judged(one.job, pools).decision.target == Placement(name, 16, 2), "pods are numbered within it"
    found = find(judged(two.job, pools), name)
    assert reason(judged(two.job, pools), name) is RejectionReason.SLICES_APART
    assert "several need a JobSet with exclusive-topology cloud.google.com/gke-nodepool" in verdict_text(found)


@pytest.mark.parametrize("own", [True, False])
def test_slices_of_several_hosts_are_joined_where_each_has_pods_of_its_own(reports: Reports, own: bool) -> None:
    key = "cloud.google.com/gke-nodepool" if own else "topology.kubernetes.io/zone"
    for index in range(4):
        labels = reports.nodes[f"tpu-v5e-{index}"]["metadata"]["labels"]
        labels["cloud.google.com/gke-tpu-topology"] = "4x4"
        labels["cloud.google.com/gke-nodepool"] = f"slice-{index // 2}"
    (body,) = reports.objects("12", "ProfiledJob")
    job = body["spec"]["workload"].pop("job")
    about = {"annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": key}}
    role = {"name": "slice", "replicas": 2, "template": {"metadata": about, "spec": {"parallelism": 2, **job}}}
    chips = role["template"]["spec"].pop("chipsPerReplica")
    body["spec"]["workload"]["jobSet"] = {"chipsPerReplica": chips, "template": {"replicatedJobs": [role]}}
    body["spec"]["placement"] = {}
    body["metadata"] |= {"uid": "uid-1", "generation": 1, "creationTimestamp": "2027-01-01T00:00:00Z"}
    stored = read_job(body)
    assert stored.job.invalid is None
    every = reports.pools(stored)
    assert "has cloud.google.com/gke-nodepool, by" in verdict_text(find(judged(stored.job, every), "a100")) or not own
    pools = {name: pool for name, pool in every.items() if pool.hosts_per_slice == 2}
    (name,) = pools
    decided = judged(stored.job, pools)
    if own:
        assert decided.decision.target == Placement(name, 32, 4)
    else:
        assert reason(decided, name) is RejectionReason.SLICES_APART, "both slices may be in one zone"


def test_the_leader_may_end_the_job(reports: Reports) -> None:
    policy = {"rules": [{"succeededIndexes": "0"}]}
    stored = reports.admitted("13", {"successPolicy": policy})
    built = build(stored.job, revision(stored.job, Placement("dev", 2, 2)), reports.pools(stored)["dev"])
    assert built["spec"]["successPolicy"] == policy


def test_what_a_save_that_does_not_come_holds_back_can_not_be_approved(reports: Reports) -> None:
    stored = reports.admitted("14")
    job = running(stored.job, HOME)
    moved = judged(job, reports.pools(stored)).decision
    assert moved.action is Action.MOVE and moved.target is not None
    assert job.state.revision is not None
    there = altered(job.state.revision, revision=2, placement=moved.target)
    entry = LedgerEntry(
        id="d-1",
        action=Action.MOVE,
        source=HOME,
        target=there.placement,
        predicted_throughput=None,
        baseline_throughput=None,
        realised_throughput=None,
        started_at=NOW - 120.0,
        finished_at=NOW - 60.0,
        outcome=Outcome.HELD,
        reason=Reason.CHECKPOINT_TIMEOUT.value,
    )
    job = changed(job, history=(entry,))
    made = plan(fleet([job], reports.pools(stored))).assessments[job.key]
    assert made.decision.reason is Reason.CHECKPOINT_TIMEOUT
    drafted = draft_status(altered(stored, job=job), job, Context(made, None, True, NOW))
    status = ProfiledJobStatus.from_dict(drafted.body)
    assert status.recommendation is not None and not status.recommendation.approvable
    assert "no save" in status.recommendation.message


def test_each_input_is_tried(reports: Reports) -> None:
    """An input that is added to the folder has a test here."""
    named = set(re.findall(r'"(\d\d)"', Path(__file__).read_text()))
    assert reports.names() and not reports.names() - named
