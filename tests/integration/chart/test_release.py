"""The life cycle of a release on a separate cluster: installed, upgraded, rolled back, uninstalled, installed again.

The cluster is separate because definitions are global and are removed here. A job runs all the time and must not be
affected. The operator's namespace enforces the restricted Pod Security Standard. The tests depend on each other, in
this order.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from devcluster import cluster as clusters
from devcluster import recipes
from devcluster.processes import Supervisor
from devcluster.spec import CHART as CLUSTER
from devcluster.spec import DevclusterError
from tests.patience import PATIENCE, eventually
from tools.dashboards.answers import ask, check_panels

from .release import (
    CHART,
    HELM_WAITS,
    NAME,
    SYSTEM,
    Object,
    Release,
    Workload,
    cluster_with_images,
    differences,
    previous_chart,
)

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    folder = tmp_path_factory.mktemp("images")
    with cluster_with_images(CLUSTER, folder, kept=False) as (running, _):
        namespace = {"apiVersion": "v1", "kind": "Namespace"}
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        running.kubectl.apply(
            [
                {**namespace, "metadata": {"name": SYSTEM, "labels": restricted}},
                {**namespace, "metadata": {"name": "research"}},
            ]
        )
        yield Release(running, folder / recipes.VALUES)


@pytest.fixture(scope="module")
def workload(release: Release) -> Workload:
    return Workload(release.kubectl, "research", "bert")


@pytest.fixture(scope="module")
def untouched(release: Release, workload: Workload, tmp_path_factory: pytest.TempPathFactory) -> Object:
    """The identity of a job that the previous version started."""
    release.install(previous_chart(tmp_path_factory.mktemp("chart")))
    release.until_led()
    workload.start()
    eventually(lambda: workload.runs() and workload.placed(), release.operators)
    return workload.identity()


def test_the_previous_version_runs(release: Release, workload: Workload, untouched: Object) -> None:
    release.until_defined(new=False)
    assert len(release.pods()) == 2
    assert workload.identity() == untouched


def test_images_are_run_by_digest(release: Release, workload: Workload, untouched: Object) -> None:
    """The operator's image, and the profiler's in pods."""
    chosen = yaml.safe_load(release.images.read_text())
    (deployment,) = (item for item in release.rendered() if item["kind"] == "Deployment")
    named = {c["image"] for c in release.live(deployment)["spec"]["template"]["spec"]["containers"]}
    assert named == {f"rightpool/operator@{chosen['image']['digest']}"}
    profilers = {
        container["image"]
        for pod in release.kubectl.json("get", "pods", f"--namespace={workload.namespace}")["items"]
        for container in pod["spec"]["initContainers"]
    }
    assert profilers == {f"rightpool/profiler@{chosen['sidecar']['image']['digest']}"}


def test_an_upgrade_brings_the_new_definition(release: Release, workload: Workload, untouched: Object) -> None:
    key, before = release.key(), release.pods()
    release.install(CHART, "podAnnotations.version=new")
    release.until_defined(new=True)
    assert release.key() == key
    # Helm waits for the new ones only.
    eventually(lambda: not before & release.pods(), release.operators)
    release.until_led()
    assert workload.identity() == untouched


def test_helm_test_passes(release: Release, untouched: Object) -> None:
    output = release.helm("test", NAME, "--logs", HELM_WAITS)
    for line in ("ok: the API server serves", " leads", "ok: the operator's metrics are served"):
        assert line in output


def test_nothing_is_stored_otherwise_than_rendered(release: Release, untouched: Object) -> None:
    """A GitOps controller then finds no drift."""
    found = []
    for item in release.rendered():
        for difference in differences(item, release.live(item)):
            found.append(f"{item['kind']} {item['metadata']['name']}{difference}")
    assert found == []


def test_a_server_side_diff_is_empty(release: Release, workload: Workload, untouched: Object) -> None:
    """As a GitOps controller makes it, of the release and of a job that runs."""
    documents = yaml.safe_dump_all([*release.rendered(), workload.body()])
    manager = ("--server-side", "--force-conflicts", "--field-manager=argocd-controller")
    assert release.kubectl("diff", *manager, "-f-", stdin=documents) == ""


def test_a_replica_may_be_drained_and_the_last_one_may_not(release: Release, untouched: Object) -> None:
    def counted() -> tuple[int, int]:
        status = release.kubectl.json("get", "poddisruptionbudget", NAME, f"--namespace={SYSTEM}")["status"]
        return status["disruptionsAllowed"], status["expectedPods"]

    eventually(lambda: counted() == (1, 2), lambda: f"{counted()}\n{release.operators()}")


def test_the_next_replica_takes_over(release: Release, workload: Workload, untouched: Object) -> None:
    leader = release.leader()
    release.kubectl("delete", "pod", leader, f"--namespace={SYSTEM}", "--wait=false")
    eventually(lambda: release.leader() not in ("", leader), release.operators)
    assert workload.identity() == untouched


def test_every_panel_has_data(release: Release, untouched: Object) -> None:
    chosen = {"operator": SYSTEM, "namespace": "research", "profiledjob": "bert"}
    failures: list[str] = []

    def complete() -> bool:
        failures[:] = check_panels(release.cluster.prometheus_url, variables=chosen)
        return not failures

    eventually(complete, lambda: "\n".join(failures))


def test_no_alert_is_raised_where_all_is_well(release: Release, untouched: Object) -> None:
    """Their waiting times left aside, but for a moment: replicas are not scraped at once, so that for one interval the
    last leader and the next one both lead."""
    groups = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]

    def raised() -> dict[str, list[Any]]:
        found = {
            rule["alert"]: ask(release.cluster.prometheus_url, rule["expr"])
            for group in groups
            for rule in group["rules"]
        }
        return {alert: series for alert, series in found.items() if series}

    # An error of a start that took long is counted for a quarter of an hour.
    eventually(lambda: raised() == {}, lambda: str(raised()), 2 * PATIENCE)


def test_a_rollback_brings_the_old_definition_back(release: Release, workload: Workload, untouched: Object) -> None:
    key = release.key()
    release.helm("rollback", NAME, "1", "--wait", HELM_WAITS)
    release.until_defined(new=False)
    assert release.key() == key
    release.until_led()
    assert workload.identity() == untouched


def test_the_operator_asked_for_nothing_that_it_may_not(release: Release, untouched: Object) -> None:
    # Checked before its rights are removed.
    assert release.refused() == set()


def test_replicas_that_start_without_an_api_server_are_ready_soon_after_it_is_back(
    release: Release, workload: Workload, untouched: Object
) -> None:
    """They wait for it, and are started once: a kubelet waits longer before every further start.

    After the tests of alerts and of the audit log: cycles fail without an API server, and one that starts refuses what
    its roles allow.
    """
    # A pod of the other version may still end after the roll back.
    eventually(lambda: len(release.restarts()) == len(release.processes()) == 2, release.operators)
    before = release.restarts()
    supervisor = Supervisor(release.cluster.spec.state)
    record = supervisor.record("kube-apiserver")
    assert record is not None
    record.identity.signal(signal.SIGKILL)
    old = release.processes()
    for pid in set().union(*old.values()):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: len(release.processes().keys() - old.keys()) == 2, lambda: "the kubelet starts them again")
    time.sleep(20)  # of which they make several attempts
    programs = clusters.programs(release.cluster.spec, root=True)
    program = next(program for program in programs if program.name == "kube-apiserver")
    supervisor.ensure(program)
    supervisor.wait(program, seconds=PATIENCE)
    began = time.monotonic()
    after = {name: (count + 1, True) for name, (count, _) in before.items()}
    eventually(lambda: release.restarts() == after, lambda: f"{release.restarts()}\n{release.operators()}")
    print(f"ready {time.monotonic() - began:.1f} s after the API server")
    release.until_led()
    print(f"led {time.monotonic() - began:.1f} s after the API server")
    assert workload.identity() == untouched


def test_uninstalling_leaves_what_jobs_live_on(release: Release, workload: Workload, untouched: Object) -> None:
    key = release.key()
    release.helm("uninstall", NAME, "--wait", HELM_WAITS)
    # The garbage collector ends them, and it has just found the API server again.
    eventually(lambda: release.pods() == set(), release.operators)
    assert release.key() == key
    assert workload.identity() == untouched
    assert workload.runs()


def test_a_new_installation_takes_over_what_was_left(release: Release, workload: Workload, untouched: Object) -> None:
    key = release.key()
    release.install(CHART)
    release.until_led()
    assert release.key() == key
    release.until_defined(new=True)
    # It has read the job and has nothing to do.
    eventually(lambda: _seen(release), release.operators)
    assert workload.identity() == untouched


def _seen(release: Release) -> bool:
    page = release.kubectl("get", "--raw", f"/api/v1/namespaces/{SYSTEM}/pods/{release.leader()}:9090/proxy/metrics")
    return 'rightpool_operator_jobs{state="Running"} 1.0' in page


def test_without_keep_everything_goes(release: Release, workload: Workload, untouched: Object) -> None:
    release.install(CHART, "crds.keep=false")
    assert workload.identity() == untouched
    # As the documentation says: what goes with its definition, the garbage collector may miss.
    release.kubectl("delete", "profiledjobs", "--all", "--all-namespaces", "--cascade=foreground", seconds=PATIENCE)
    assert workload.identity() == {"profiledjobs": [], "jobs": [], "pods": []}
    release.helm("uninstall", NAME, "--wait", HELM_WAITS)
    with pytest.raises(DevclusterError, match="NotFound"):
        release.key()
    eventually(lambda: "rightpool.dev" not in release.kubectl("get", "crds", "--output=name"), release.operators)
