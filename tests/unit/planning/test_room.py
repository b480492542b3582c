"""Room by node and slice, what is kept free for a job that waits long, and who may go beside it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.pool import Slice
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.hardware.pool import OpenNode, Pool
from rightpool.planning.allocate.openings import Openings
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.allocate.room import Room
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.evidence import Gathering
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import NOW, changed, decided_text, find, fleet, fresh, plan, running, spec
from tests.unit.planning.test_plan import FREE, actions, reasons
from tests.unit.prediction.fixtures import A100_CHIP, pool

EIGHT = Placement("a100", 8, 1)


def nodes(*free: int, total: int = 64, growable: int = 0) -> Pool:
    """A pool of nodes with so many free chips each."""
    opened = tuple(OpenNode(f"n{number}", chips) for number, chips in enumerate(free) if chips)
    return replace(pool("a100", A100_CHIP, 4.0, total=total, free=sum(free), growable=growable), open_nodes=opened)


def fixed(chips: int, replicas: int = 1) -> ProfiledJobSpec:
    count = chips * replicas
    job = {"chipsPerReplica": chips, "replicas": replicas, "template": spec().workload.job.template}
    sizes = {"minChips": count, "maxChips": count, "batch": "PerChip"}
    return spec(workload={"job": job}, elasticity=sizes, placement={"pools": {"allow": ["a100"]}})


# --- by node ---------------------------------------------------------------------------------------------------------


def test_eight_nodes_with_one_free_chip_each_are_no_room_for_a_pod_of_eight() -> None:
    job = fresh("job", fixed(8), created_at=NOW - 60)
    made = plan(fleet([job], {"a100": nodes(*[1] * 8)}, FREE))
    assert reasons(made) == {"job": Reason.WAITING_FOR_CAPACITY}
    assert find(made.assessments[job.key], "a100").rejection is not None
    assert actions(plan(fleet([job], {"a100": nodes(1, 1, 8)}, FREE))) == {"job": Action.START}
    many = fresh("many", fixed(1, 8), created_at=NOW - 60)
    assert actions(plan(fleet([many], {"a100": nodes(*[1] * 8)}, FREE))) == {"many": Action.START}


def test_who_waits_for_quota_keeps_no_chips_from_others() -> None:
    waiting = fresh("queued", fixed(8).model_copy(update={"queue_name": "research"}), created_at=NOW - 600)
    child = RevisionState(1, exists=True, suspended=True)
    placed = running(EIGHT).state.revision
    assert placed is not None
    waiting = changed(waiting, revision=replace(placed, since=None), revisions={1: child})
    job = fresh("job", fixed(8), created_at=NOW - 60)
    pools = {"a100": nodes(8)}
    assert actions(plan(fleet([waiting, job], pools, FREE)))["job"] is Action.START
    admitted = changed(waiting, revisions={1: replace(child, suspended=False)})
    assert reasons(plan(fleet([admitted, job], pools, FREE)))["job"] is Reason.WAITING_FOR_CAPACITY


def test_two_pods_of_four_fit_where_one_of_eight_does_not() -> None:
    room = Room({"a100": nodes(4, 4)})
    assert room.fits(fresh(), [EIGHT, Placement("a100", 8, 2)]) == (False, True)


def test_an_autoscaler_adds_empty_nodes() -> None:
    room = Room({"a100": nodes(4, growable=16)})
    job = fresh()
    assert room.fits(job, [EIGHT, Placement("a100", 16, 2), Placement("a100", 24, 3)]) == (True, True, False)
    room.take(job, Placement("a100", 16, 2))
    assert room.fits(fresh("other"), [EIGHT, Placement("a100", 4, 1)]) == (False, True)


def test_a_small_pod_goes_where_it_leaves_room_for_a_large_one() -> None:
    room = Room({"a100": nodes(8, 2)})
    room.take(fresh("small"), Placement("a100", 1, 1))
    assert room.fits(fresh("large"), [EIGHT]) == (True,)


@pytest.mark.parametrize(("other", "grows"), [("n0", True), ("n1", False)])
def test_a_job_grows_into_what_is_free_on_its_own_node(other: str, grows: bool) -> None:
    """Four chips on n0, and four free: on the same node they add up to eight."""
    pods = {1: RevisionState(1, True, active=1, running=1, nodes={other: 1})}
    job = running(Placement("a100", 4, 1), revisions=pods)
    assert Room({"a100": nodes(4)}, [job]).fits(job, [EIGHT]) == (grows,)


def test_slices_are_given_out_whole() -> None:
    sliced = replace(
        nodes(), slice=Slice(topology="2x4", chips=8), chips_per_node=4, free=16, open_nodes=(OpenNode("a/0", 8),)
    )
    assert Room({"a100": sliced}).fits(fresh(), [Placement("a100", 8, 2), Placement("a100", 16, 4)]) == (True, False)


@given(
    st.lists(st.integers(1, 8), max_size=6),
    st.integers(0, 2),
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([1, 2, 3, 4, 8])), max_size=8),
)
def test_what_is_taken_is_never_more_than_there_is_and_comes_back(
    free: list[int], fresh_nodes: int, asked: list[tuple[int, int]]
) -> None:
    openings = Openings(nodes(*free, growable=8 * fresh_nodes))
    before = {each: openings.pods(each) for each in range(1, 9)}
    taken = []
    for pods, each in asked:
        fits = openings.pods(each)
        got = openings.take(pods, each)
        assert sum(got.values()) == min(pods, fits) * each
        taken.append(got)
    assert sum(sum(got.values()) for got in taken) <= sum(free) + 8 * fresh_nodes
    for got in taken:
        openings.give(got)
    assert {each: openings.pods(each) for each in range(1, 9)} == before


@pytest.mark.parametrize("action", [Action.UPDATE, Action.MOVE])
def test_chips_are_given_back_where_a_save_is_waited_for_too_long(action: Action) -> None:
    """They are nobody's meanwhile, and an edit pays for them."""
    edited = running(Placement("a100", 4, 1), name="edited", made=fixed(8))
    source = edited.state.revision
    assert source is not None
    target = replace(source, revision=2, placement=EIGHT, since=None)
    other = fresh("other", fixed(8), created_at=NOW - 60)
    pools = {"a100": nodes(8)}

    def waiting(seconds: float, *others: Job) -> Plan:
        since = NOW - seconds
        asked = Migration("d-1", action, Phase.CHECKPOINTING, source, target, since, since, Reason.UPDATING, "m")
        return plan(fleet([changed(edited, migration=asked), *others], pools, FREE))

    deadline = FREE.start_deadline.total_seconds()
    assert reasons(waiting(deadline, other))["other"] is Reason.WAITING_FOR_CAPACITY
    made = waiting(deadline + 1.0, other)
    assert actions(made)["other"] is Action.START and not made.assessments[edited.key].withdrawn
    assert not waiting(deadline + 1.0).assessments[edited.key].withdrawn, "nobody has asked for them"
    started = changed(other, revision=replace(target, revision=1), revisions={})
    made = waiting(deadline + 1.0, started)
    assert made.assessments[edited.key].withdrawn
    asked = Migration("d-1", action, Phase.CHECKPOINTING, source, target, 0.0, NOW - 601.0, Reason.UPDATING, "m")
    job = changed(edited, migration=asked, workload_hash=target.workload_hash)
    after = advance(job, made.assessments[edited.key], FREE, NOW, decision_text)
    entry = after.state.history[-1]
    assert (entry.outcome, entry.reason) == (Outcome.HELD, Reason.WAITING_FOR_CAPACITY)
    assert "others got 8 chips of a100 while its save was waited for (10 min)" in entry.message
    assert after.state.migration is None and after.state.revision == source
    assert len(entry.message) <= 160


# --- kept free for the oldest ----------------------------------------------------------------------------------------


def churn(*, keep: bool) -> int | None:
    """Rounds until a job of 8 chips starts that single chips compete with: each round two of them end, elsewhere."""
    waited = 86_400.0 if keep else 60.0
    large = fresh("large", fixed(8), created_at=NOW - waited)
    free = [0] * 4
    for step in range(40):
        free[step % 4] = min(8, free[step % 4] + 1)
        small = [fresh(f"s{step}{number}", fixed(1), created_at=NOW - 30 + number) for number in range(2)]
        made = plan(fleet([large, *small], {"a100": nodes(*free)}, FREE))
        if actions(made)["large"] is Action.START:
            return step
        for job in small:
            if actions(made)[job.key.name] is Action.START:
                at = min((n for n in range(4) if free[n]), key=lambda n: free[n])
                free[at] -= 1
    return None


def test_a_large_job_is_not_passed_over_for_ever_by_small_newcomers() -> None:
    assert churn(keep=False) is None, "as long as it has not waited for long, who fits goes first"
    assert churn(keep=True) is not None


def test_who_does_not_delay_it_goes_beside_it() -> None:
    large = fresh("large", fixed(8), created_at=NOW - 86_400.0)
    small = [fresh(f"s{number}", fixed(2), created_at=NOW - 30 + number) for number in range(2)]
    made = plan(fleet([large, *small], {"a100": nodes(6, 2)}, FREE))
    assert actions(made) == {"large": Action.HOLD, "s0": Action.START, "s1": Action.HOLD}
    assert reasons(made)["s1"] is Reason.WAITING_FOR_OLDER_JOB
    held = made.assessments[small[1].key]
    rejection = find(held, "a100").rejection
    assert rejection is not None and rejection.reason is RejectionReason.KEPT_FREE
    assert "are kept for an older job" in decided_text(held)
    waits = made.assessments[large.key]
    assert waits.decision.evidence == Gathering(EIGHT)
    assert "nodes of a100 are kept free for it" in decided_text(waits)


def test_a_plan_that_is_kept_gives_what_was_kept_free_back() -> None:
    large = fresh("large", fixed(8), created_at=NOW - 86_400.0)
    small = fresh("small", fixed(2), created_at=NOW - 30)
    pools = {"a100": nodes(6)}
    first = plan(fleet([large, small], pools, FREE))
    assert actions(first) == {"large": Action.HOLD, "small": Action.HOLD}
    assert actions(plan(fleet([small], pools, FREE), first)) == {"small": Action.START}
    again = plan(fleet([large, small], pools, FREE), first)
    assert again.assessments[small.key].decision == first.assessments[small.key].decision


def with_end(seconds: int) -> ProfiledJobSpec:
    """Of two chips, for at most so long."""
    limit = {"activeDeadlineSeconds": seconds}
    template = {"spec": {"containers": [{"name": "trainer", "image": "x"}]}}
    return spec(2, workload={"job": {"chipsPerReplica": 2, "template": template, **limit}}, elasticity={})


@pytest.mark.parametrize(
    ("seconds", "action"), [(3600, Action.START), (7300, Action.HOLD), (None, Action.HOLD)], ids=["ends", "later", "?"]
)
def test_chips_that_are_kept_free_are_lent_to_who_ends_before_they_are_needed(
    seconds: int | None, action: Action
) -> None:
    """On the node with the most free chips runs a job that ends in two hours: only then the large one can start."""
    large = fresh("large", fixed(8), created_at=NOW - 86_400.0)
    runs = running(Placement("a100", 2, 1), made=with_end(3 * 3600), name="runs")
    child = RevisionState(1, True, active=1, running=1, nodes={"n0": 2}, started_at=NOW - 3600.0)
    runs = changed(runs, revisions={1: child})
    small = fresh("small", fixed(2) if seconds is None else with_end(seconds), created_at=NOW - 30)
    made = plan(fleet([large, runs, small], {"a100": nodes(6)}, FREE))
    assert actions(made)["small"] is action and actions(made)["large"] is Action.HOLD
