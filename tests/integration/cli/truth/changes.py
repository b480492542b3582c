"""What Events and conditions say of the known fleet while users change it, and what becomes of the pods."""

from __future__ import annotations

from collections import Counter

from rightpool.cluster.resources import EVENTS
from rightpool.contract import ANNOTATION_APPROVE
from tests.integration.cli.truth.asking import Statement
from tests.integration.cli.truth.machines import Body
from tests.integration.cli.truth.scene import Scene
from tests.integration.cli.truth.statements import Statements
from tests.integration.cli.truth.states import FAILURE, moment
from tests.integration.faults.fleet import new_image
from tests.patience import eventually

MOST_OF_A_QUIET_JOB, MOST_OF_A_MOVE = 3, 5
DAYS = 30 * 86_400.0


def events_of(scene: Scene, name: str) -> Counter[tuple[str, str]]:
    """How often each was said, by type and reason."""
    found: Counter[tuple[str, str]] = Counter()
    for event in scene.fleet.client.list_all(EVENTS, scene.fleet.namespace):
        about = event["involvedObject"]
        if about["kind"] == "ProfiledJob" and about["name"] == name:
            found[event["type"], event["reason"]] += event.get("count") or 1
    return found


def of_how_many_events(scene: Scene) -> Statements:
    """Of jobs that were left alone since they were created."""
    for name in ("steady", "intime", "holder", "crowded"):
        found = events_of(scene, name)
        yield Statement(f"Events of {name}: few", found, found.total() <= MOST_OF_A_QUIET_JOB)
    found = events_of(scene, "moved")
    found.pop(("Normal", "Starting"))  # before the move
    yield Statement("Events of moved: few of a move", found, 0 < found.total() <= MOST_OF_A_MOVE)


def of_targets(scene: Scene) -> Statements:
    """A target that is about to be missed, that was missed, and that is met again."""
    for name, reason in (("late", "DeadlineMissed"), ("risk", "DeadlineAtRisk"), ("spender", "BudgetAtRisk")):
        found = events_of(scene, name)
        yield Statement(f"Events of {name}: once", found, found["Warning", reason] == 1)
        yield Statement(f"Events of {name}: is not met", found, not found["Normal", "TargetsHold"])
    scene.fleet.edit("late", lambda spec: spec["targets"].update(deadline=moment(DAYS)))
    eventually(lambda: events_of(scene, "late")["Normal", "TargetsHold"], "late is met again")
    found = events_of(scene, "late")
    yield Statement("Events of late: met again", found, found["Normal", "TargetsHold"] == 1)
    yield Statement("Events of late: missed once", found, found["Warning", "DeadlineMissed"] == 1)


def of_a_spent_budget(scene: Scene) -> Statements:
    """budgetAction Suspend saves first, and says so once."""
    scene.fleet.edit("spender", lambda spec: spec["targets"].update(budget="1", budgetAction="Suspend"))
    eventually(lambda: scene.fleet.condition("spender", "Placed").get("reason") == "BudgetExceeded", "it stops")
    eventually(lambda: not scene.fleet.revisions_alive("spender"), "its pods end")
    message = scene.fleet.condition("spender", "Placed")["message"]
    yield Statement("spender: after a save", message, "its last save was" in message)
    eventually(lambda: events_of(scene, "spender")["Warning", "BudgetExceeded"], "its Event")
    found = events_of(scene, "spender")
    yield Statement("Events of spender: exceeded", found, found["Warning", "BudgetExceeded"] >= 1)
    yield Statement("Events of spender: a save", found, not {reason for _, reason in found} & {"SaveFailed"})
    (line,) = [line for line in scene.user.document("top")["jobs"] if line["name"] == "spender"]
    yield Statement("top spender: is over its budget", line["dollarsLeft"], line["dollarsLeft"] < 0.0)
    yield Statement("top spender: holds nothing", line["chips"], line["chips"] is None)


def of_a_wrong_approval(scene: Scene) -> Statements:
    """It is answered in a condition and by one Event, and nothing is moved."""
    body = {"metadata": {"annotations": {ANNOTATION_APPROVE: "d-99-nowhere"}}}
    path = f"/apis/rightpool.dev/v1alpha1/namespaces/{scene.fleet.namespace}/profiledjobs/advised"
    scene.fleet.client.request("PATCH", path, body=body, content="application/merge-patch+json")
    eventually(lambda: scene.fleet.condition("advised", "Migrating").get("reason") == "ApprovalUnknown", "an answer")
    message = scene.fleet.condition("advised", "Migrating")["message"]
    yield Statement("advised: which approval", message, "d-99-nowhere" in message)
    eventually(lambda: events_of(scene, "advised")["Warning", "ApprovalUnknown"], "its Event")
    found = events_of(scene, "advised")
    yield Statement("Events of advised: a wrong approval", found, found["Warning", "ApprovalUnknown"] == 1)
    where = scene.fleet.status("advised")["placement"]["revision"]
    yield Statement("advised: nothing was moved", where, where == 1)


def of_edits(scene: Scene) -> Statements:
    """An edit that changes nothing of the placement, and one in the middle of a move."""
    pods = {pod["metadata"]["uid"] for pod in scene.fleet.pods("holder")}

    def ask_for_more(spec: Body) -> None:
        """The pool has 4 chips, and the job has them."""
        spec["workload"]["job"].update(replicas=2)
        spec["elasticity"].update(maxChips=8, batch="PerChip")

    scene.fleet.edit("holder", ask_for_more)
    generation = scene.fleet.job("holder")["metadata"]["generation"]
    eventually(lambda: scene.fleet.status("holder").get("observedGeneration") == generation, "the edit is seen")
    yield Statement("holder: the revision", "", scene.fleet.status("holder")["placement"]["revision"] == 1)
    still = {pod["metadata"]["uid"] for pod in scene.fleet.pods("holder")}
    yield Statement("holder: its pods", still, still == pods)

    scene.fleet.edit("saving", new_image)
    eventually(lambda: scene.fleet.status("saving").get("history"), "the move is given up")
    (entry, *_) = scene.fleet.status("saving")["history"]
    yield Statement("saving: the outcome", entry["outcome"], entry["outcome"] == "Superseded")
    yield Statement("saving: nothing is proven", entry, "realised" not in entry)


def of_what_the_child_is_given(scene: Scene) -> Statements:
    """What a user may say of a batch/v1 Job beside its template."""
    child = scene.fleet.child("failed-r1")
    yield Statement("failed: its child", "", child is not None)
    given = {} if child is None else {key: child["spec"].get(key) for key in FAILURE}
    rules = (given.get("podFailurePolicy") or {}).get("rules", [])
    given["podFailurePolicy"] = {"rules": rules[:1]}  # the operator's own come after the user's
    yield Statement("failed: podFailurePolicy and the rest", given, given == FAILURE)
    message = scene.fleet.condition("failed", "Failed").get("message", "")
    yield Statement("failed: by that policy, at the first failure", message, "PodFailurePolicy" in message)
