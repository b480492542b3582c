"""Objects whose kind takes no other size are deleted and made anew where their user consents, and none is ever lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rightpool.cluster.client import MERGE_CONTENT
from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_RELEASE
from rightpool.workloads.in_place import is_held
from tests.integration.faults.fleet import A10G, A100, DEAD, Body
from tests.integration.faults.site import CrashingOperator, Site
from tests.integration.kinds.conftest import INSTALLED
from tests.integration.kinds.test_in_place import Mine, played, pytestmark
from tests.patience import PATIENCE, eventually

__all__ = ["pytestmark"]

CONSENT: Body = {"adoption": {"change": "Recreate"}, "elasticity": {"chipCounts": [8]}}


@pytest.fixture(params=("jobSet", "trainJob"))
def field(request: pytest.FixtureRequest) -> str:
    """Each kind that takes no other size."""
    found = str(request.param)
    if found in INSTALLED:
        request.getfixturevalue(INSTALLED[found])
    return found


def shrink(one: Mine, pool: str) -> None:
    """Send it there with one pod in place of two."""

    def smaller(spec: Body) -> None:
        spec["elasticity"]["chipCounts"] = [4]
        spec["placement"]["pools"]["allow"] = [pool]

    one.tenant.edit("llm", smaller)


def lost(one: Mine) -> bool:
    """Whether it is nowhere: neither there nor in a status. It may be deleted between two looks."""
    return not (kept(one) or uid(one) or kept(one))


def kept(one: Mine) -> bool:
    """Whether the status says what it was, and a finalizer keeps that."""
    job = one.tenant.job("llm")
    return bool(job["metadata"].get("finalizers")) and "remade" in (job["status"].get("adopted") or {})


def uid(one: Mine) -> str:
    """Empty where it is not there."""
    try:
        return str(one.body["metadata"]["uid"])
    except NotFound:
        return ""


def gone(one: Mine) -> bool:
    """Whether its ProfiledJob is."""
    try:
        return not one.tenant.job("llm")
    except NotFound:
        return True


def free(one: Mine) -> bool:
    """Whether its ProfiledJob is kept by nothing, and says no more what it was."""
    job = one.tenant.job("llm")
    return not job["metadata"].get("finalizers") and "remade" not in (job["status"].get("adopted") or {})


def release(one: Mine) -> None:
    body = {"metadata": {"annotations": {ANNOTATION_RELEASE: "true"}}}
    path = PROFILED_JOBS.path(one.tenant.namespace, "llm")
    one.tenant.client.request("PATCH", path, body=body, content=MERGE_CONTENT)


def test_killed_at_every_write_it_is_made_anew_and_comes_back(
    site: Site, field: str, impatient: Callable[[], None]
) -> None:
    one = played(site, field, chips=4)
    operator = CrashingOperator(site)
    one.create(CONSENT)
    operator.until(lambda: one.placed(A100, 1), "it is found")
    shrink(one, DEAD)

    def anew() -> bool:
        assert not lost(one)
        return uid(one) not in ("", one.before["metadata"]["uid"]) and not is_held(one.body)

    operator.until(anew, "it is made anew")
    there = uid(one)
    impatient()

    def back() -> bool:
        assert not lost(one)
        return one.tenant.outcomes("llm") == ["RolledBack"] and one.runs_on(A100) and free(one)

    operator.until(back, "it is back")
    body = one.body
    assert one.untouched(body) and not is_held(body)
    assert body["metadata"]["uid"] not in (there, one.before["metadata"]["uid"])
    plural = one.resource.plural
    steps = [f"PATCH {plural}/llm suspend", f"DELETE {plural}/llm", f"POST {plural}/llm", f"PATCH {plural}/llm resume"]
    assert operator.missed(*steps, "PATCH profiledjobs/llm guard", "PATCH profiledjobs/llm free") == []


def test_it_has_another_size_and_is_what_it_was_once_it_is_released(site: Site, field: str) -> None:
    site.operate()
    one = played(site, field, chips=4)
    one.adopt(**CONSENT)
    shrink(one, A10G)
    eventually(lambda: one.runs_on(A10G, pods=1) and one.placed(A10G, 2) and free(one), "it has one pod")
    eventually(lambda: one.tenant.phase("llm") in (None, "WarmingUp", "Verifying"), "it has arrived")
    release(one)
    eventually(lambda: one.runs_on(A100) and gone(one), "it is back, and its ProfiledJob is gone")
    eventually(lambda: not one.body["metadata"].get("annotations"), "nothing is left on it")
    assert one.untouched()


def test_whoever_deletes_the_profiledjob_while_it_is_gone_gets_it_back(site: Site, field: str) -> None:
    one = played(site, field, chips=4)
    replica = site.operate()
    one.adopt(**CONSENT)
    replica.kill()
    assert site.ended(replica, PATIENCE)
    points = site.folder / f"{site.namespace}.deleted"
    shrink(one, A10G)
    while not (points.exists() and f"after DELETE {one.resource.plural}/llm" in points.read_text()):
        assert site.ended(site.operate(crash=f"points:{points}"), PATIENCE)
    eventually(lambda: not uid(one), "it is deleted")
    one.tenant.client.delete(PROFILED_JOBS, "llm", one.tenant.namespace)
    assert one.tenant.job("llm")["metadata"]["deletionTimestamp"] and not lost(one)
    site.operate()
    eventually(lambda: uid(one) and gone(one), "it is there again, and the ProfiledJob is gone")
    eventually(lambda: one.runs_on(A10G, pods=1) and not is_held(one.body), "and runs")


def test_without_consent_it_is_left_as_it_is(site: Site, field: str) -> None:
    site.operate()
    one = played(site, field, chips=4)
    one.adopt(elasticity={"chipCounts": [8]})
    shrink(one, A10G)
    eventually(lambda: "NoFeasiblePool" in str(one.tenant.status("llm")), "there is nowhere to go")
    assert one.untouched() and one.body["metadata"]["uid"] == one.before["metadata"]["uid"]
