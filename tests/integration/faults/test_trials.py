"""A trial, with the operator killed before and after each of its writes: the job runs on, and nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.contract import LABEL_JOB
from tests.integration.cli.test_commands import rightpool
from tests.integration.faults.fleet import A100, FAIR, Body
from tests.integration.faults.site import CrashingOperator, Site
from tests.integration.runtime.test_crash import events
from tests.patience import eventually

pytestmark = pytest.mark.cluster

NAME, TRIAL = "tried", "tried-t1"


def pods(site: Site, name: str) -> list[Body]:
    return site.tenant.client.list_all(PODS, site.tenant.namespace, labels=f"{LABEL_JOB}={name}")


def there(site: Site) -> bool:
    try:
        site.tenant.client.get(PROFILED_JOBS, TRIAL, site.tenant.namespace)
    except NotFound:
        return False
    return True


def test_killed_at_each_write_a_trial_measures_and_ends(site: Site) -> None:
    operator = CrashingOperator(site)
    site.tenant.train(NAME, trial={"duration": "6s"}, placement={"pools": {"allow": [A100, FAIR]}})
    operator.until(lambda: there(site), "its trial is there")
    (before,) = pods(site, NAME)
    operator.until(lambda: site.tenant.status(NAME).get("trials") and not there(site), "its trial has come and gone")
    status = site.tenant.status(NAME)
    assert "trial" not in status and status["placement"]["pool"] == A100
    assert [pod["metadata"]["uid"] for pod in pods(site, NAME)] == [before["metadata"]["uid"]], "the job runs on"
    operator.until(lambda: not pods(site, TRIAL), "its pods have gone")
    assert operator.missed(f"POST profiledjobs/{TRIAL}", f"DELETE profiledjobs/{TRIAL}") == []


def test_a_user_has_what_is_known_tried_once_more(site: Site, kubeconfig: Path) -> None:
    site.tenant.train(TRIAL, suspend=True)
    site.operate()
    site.tenant.train(NAME, trial={"duration": "4s"}, placement={"pools": {"allow": [A100, FAIR]}})
    own = "the operator's own is over, whose first name is taken"
    eventually(lambda: (status := site.tenant.status(NAME)).get("trials") == 2 and "trial" not in status, own)
    reasons = {event["reason"] for event in events(site.tenant, NAME) if TRIAL in event["message"]}
    assert reasons == {"TrialBegun", "TrialFailed"}
    assert there(site), "what is somebody else's stays"
    ask = ("trial", NAME, "-n", site.namespace, "--for", "2s")
    refused = rightpool(*ask, "--pool", "no-such-pool", kubeconfig=kubeconfig)
    assert refused.returncode == 1 and "on pool no-such-pool is predicted" in refused.stderr
    shown = rightpool(*ask, "--pool", FAIR, "--wait", kubeconfig=kubeconfig)
    assert shown.returncode == 0, shown.stderr
    assert f"{NAME}-t3 tries it on 1 chip of {FAIR} for 2 s" in shown.stdout
    assert "times as fast as here" in shown.stdout
    assert site.tenant.status(NAME)["placement"]["pool"] == A100
