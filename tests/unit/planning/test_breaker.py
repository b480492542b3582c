"""The breaker: moves stop where they fail, for a tenant, a pool or a chip, and are tried again."""

from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.outcome import MAX_OUTCOMES
from rightpool.api.placement import Placement
from rightpool.planning.allocate.breaker import outcomes_of
from rightpool.planning.allocate.limits import FleetLimits
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.offers.evidence import Limit, Suspected
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.rejection import RejectionReason
from tests.unit.planning.jobs import NOW, auto_policy, entry, fleet, limit_of, plan, reason, running, spec
from tests.unit.prediction.fixtures import A10G, A100


def ledger(*outcomes: Outcome, age: float = 600.0, pools: int = 2, tenants: int = 2) -> list[Job]:
    """One job for each outcome, of so many tenants in turn, moved to so many pools in turn."""
    made = []
    for number, outcome in enumerate(outcomes):
        target = Placement(("a10g", "t4", "v100")[number % pools], 4, 1)
        history = (entry(outcome, NOW - age + number, target=target),)
        job = running(name=str(number), history=history)
        made.append(replace(job, key=JobKey(f"team-{number // 2 % tenants}", job.key.name)))
    return made


GOOD, BAD = Outcome.VERIFIED, Outcome.ROLLED_BACK


@pytest.mark.parametrize(
    ("outcomes", "opens"),
    [
        ((BAD,), False),
        ((BAD, BAD, BAD), False),
        ((BAD, GOOD, BAD, BAD, BAD), True),
        ((BAD, BAD, GOOD, GOOD), False),
        ((GOOD,) * 10 + (BAD,) * 6, True),
        ((BAD, BAD, BAD, BAD, GOOD), False),
        ((BAD, BAD, BAD, Outcome.HELD), False),
    ],
)
def test_the_breaker_opens_on_a_pattern(outcomes: tuple[Outcome, ...], opens: bool) -> None:
    limits = FleetLimits(ledger(*outcomes), auto_policy(), NOW)
    limit = limits.limit_on(Intent.SAVE, running(name="next"), Placement("h100", 4, 1))
    assert (limit is not None) is (limits.stop is not None) is opens
    if limit is not None:
        assert limit.reason is Reason.CIRCUIT_BREAKER_OPEN
        assert "maxRolledBackShare 50%" in limit.text(NOW)
        assert "one job may try it from" in limit.text(NOW)


def test_failures_count_no_more_once_enough_moves_have_come_after_them() -> None:
    outcomes = ledger(BAD, BAD, GOOD, GOOD, GOOD, GOOD, BAD)
    assert FleetLimits(outcomes, auto_policy(circuitBreaker={"window": 4}), NOW).stop is None
    later = ledger(BAD, BAD, age=60.0)
    outcomes += [replace(job, key=JobKey(f"team-{8 + n}", f"later-{n}")) for n, job in enumerate(later)]
    stop = FleetLimits(outcomes, auto_policy(circuitBreaker={"window": 4}), NOW).stop
    assert stop is not None and (stop.undone, stop.judged) == (3, 4)


def test_it_says_of_each_pool_what_speaks_against_it() -> None:
    limits = FleetLimits(ledger(BAD, BAD, BAD, BAD, pools=1), auto_policy(), NOW)
    found = limits.against("a10g")
    assert isinstance(found, Suspected) and (found.undone, found.judged, found.own) == (4, 4, False)
    assert limits.against("t4") is None
    one_tenant = FleetLimits(ledger(BAD, BAD, BAD, pools=1, tenants=1), auto_policy(), NOW)
    assert one_tenant.against("a10g") is None, "failures of one tenant are no matter of others"
    everywhere = FleetLimits(ledger(BAD, GOOD, BAD, BAD, BAD), auto_policy(), NOW)
    assert everywhere.against("h100") == everywhere.stop is not None


def test_the_breaker_forgets() -> None:
    assert limit_of(FleetLimits(ledger(*[BAD] * 8, age=90_000.0), auto_policy(), NOW)) is None


def of(tenant: str, name: str = "next") -> Job:
    job = running(name=name)
    return replace(job, key=JobKey(tenant, name))


def refused(limits: FleetLimits, tenant: str, pool: str) -> Limit | None:
    return limits.limit_on(Intent.SAVE, of(tenant), Placement(pool, 4, 1))


def test_jobs_of_one_tenant_that_slow_themselves_stop_nobody_else() -> None:
    limits = FleetLimits(ledger(*[BAD] * 5, pools=3, tenants=1), auto_policy(), NOW)
    assert limits.stop is None
    own = refused(limits, "team-0", "a10g")
    assert isinstance(own, Suspected) and own.own and (own.undone, own.judged) == (2, 2)
    assert "2 of the last 2 moves of this namespace to a10g had to be undone" in own.text(NOW)
    assert refused(limits, "team-1", "a10g") is None
    assert refused(limits, "team-0", "h100") is None


def test_a_tenant_is_one_witness_however_many_of_its_moves_fail() -> None:
    one_other = [*ledger(*[BAD] * 10, pools=3, tenants=1), replace(ledger(BAD)[0], uid="1x", key=JobKey("team-1", "x"))]
    limits = FleetLimits(one_other, auto_policy(), NOW)
    assert limits.stop is None
    assert isinstance(refused(limits, "team-0", "a10g"), Suspected)
    assert refused(limits, "team-1", "a10g") is None and refused(limits, "team-9", "a10g") is None
    three = [*one_other, replace(ledger(BAD)[0], uid="2x", key=JobKey("team-2", "x"))]
    assert isinstance(refused(FleetLimits(three, auto_policy(), NOW), "team-9", "a10g"), Suspected)


def test_a_bad_pool_stops_moves_there_and_nowhere_else() -> None:
    limits = FleetLimits(ledger(*[BAD] * 6, pools=1), auto_policy(), NOW)
    for tenant in ("team-0", "team-1", "team-9"):
        assert isinstance(refused(limits, tenant, "a10g"), Suspected)
        assert refused(limits, tenant, "t4") is None
    assert limits.stop is None


def test_failures_of_jobs_of_one_size_say_nothing_of_others() -> None:
    """A bad network between nodes does not slow a job on one of them."""
    gangs = [
        running(name=str(n), history=(entry(BAD, NOW - 600 + n, target=Placement("a10g", 8, 2)),)) for n in range(3)
    ]
    limits = FleetLimits(gangs, auto_policy(), NOW)
    asks = of("ns")
    assert isinstance(limits.limit_on(Intent.SAVE, asks, Placement("a10g", 16, 4)), Suspected)
    assert limits.limit_on(Intent.SAVE, asks, Placement("a10g", 1, 1)) is None
    single = running(name="single", history=(entry(BAD, NOW - 60, target=Placement("a10g", 1, 1)),))
    both = FleetLimits([*gangs, single], auto_policy(), NOW)
    assert isinstance(both.limit_on(Intent.SAVE, asks, Placement("a10g", 4, 1)), Suspected), "of several sizes"


def test_a_bad_chip_stops_moves_to_all_its_pools() -> None:
    pools = {name: replace(A10G, name=name) for name in ("a10g", "t4", "v100")} | {"a100": A100}
    limits = FleetLimits(ledger(*[BAD] * 8, *[GOOD] * 0), auto_policy(circuitBreaker={"window": 4}), NOW, pools=pools)
    untried = refused(limits, "team-9", "v100")
    assert isinstance(untried, Suspected) and untried.chip == "A10G-24GB"


def test_one_job_tries_a_suspected_pool_after_a_while_and_its_success_clears_it() -> None:
    hour_ago = ledger(*[BAD] * 2, age=4 * 3600.0, pools=1, tenants=1)
    limits = FleetLimits(hour_ago, auto_policy(), NOW)
    assert refused(limits, "team-0", "a10g") is None, "the one that tries"
    limits.admit(of("team-0"), Placement("a10g", 4, 1), demanded=False)
    second = refused(limits, "team-0", "a10g")
    assert isinstance(second, Suspected) and "one job is trying it" in second.text(NOW)
    tried = running(name="tried", history=(entry(GOOD, NOW - 60),))
    tried = replace(tried, key=JobKey("team-0", "tried"))
    after = FleetLimits([*hour_ago, tried], auto_policy(), NOW)
    after.admit(of("team-0"), Placement("a10g", 4, 1), demanded=False)
    assert refused(after, "team-0", "a10g") is None


def test_each_failure_doubles_the_time_until_the_next_trial() -> None:
    trials, moment, failures = 0, NOW - 86_000.0, [NOW - 86_000.0, NOW - 85_990.0]
    while moment < NOW:
        jobs = [running(name=str(at), history=(entry(BAD, at),)) for at in failures]
        if limit_of(FleetLimits(jobs, auto_policy(), moment)) is None:
            failures.append(moment)
            trials += 1
        moment += 600.0
    assert 3 <= trials <= 5


def test_what_pools_have_kept_counts_when_the_jobs_are_gone() -> None:
    jobs = ledger(*[BAD] * 6, pools=1)
    kept = outcomes_of(jobs, {}, NOW)
    assert isinstance(refused(FleetLimits([], auto_policy(), NOW, outcomes=kept), "team-9", "a10g"), Suspected)
    assert outcomes_of(jobs, kept, NOW) == kept, "counted once"
    month = NOW + 30 * 86_400.0
    assert outcomes_of([], kept, month) == kept, "pools forget nothing but for what is newer"
    many = ledger(*[BAD] * 100, pools=1)
    assert len(outcomes_of(many, kept, NOW)["a10g"]) == MAX_OUTCOMES


def test_another_pool_is_taken_where_the_best_is_suspected() -> None:
    """And it is said why the best one is not."""
    other = {"b10g": replace(A10G, name="b10g", price=replace(A10G.price, on_demand=1.05))}
    pools = {"a100": A100, "a10g": A10G, **other}
    job = running(made=spec(elasticity={"minChips": 4, "maxChips": 4}), ratios={"exposed_communication": 0.05})
    job = replace(job, created_at=NOW - 1e6)
    cheap = {name: replace(pool, price=replace(pool.price, on_demand=0.2)) for name, pool in pools.items()}
    cheap = {**cheap, "a100": A100}
    whole = fleet([job], cheap)
    assert whole is not None
    first = plan(whole).assessments[job.key].decision
    assert first.action is Action.MOVE and first.target is not None
    bad = outcomes_of(
        [
            running(name=str(number), history=(entry(BAD, NOW - 60 + number, target=first.target),))
            for number in range(3)
        ],
        {},
        NOW,
    )
    made = plan(replace(whole, outcomes=bad)).assessments[job.key]
    assert made.decision.action is Action.MOVE and made.decision.target is not None
    assert made.decision.target.pool != first.target.pool
    assert reason(made, first.target.pool) is RejectionReason.SUSPECTED
    alone = {"a100": A100, first.target.pool: cheap[first.target.pool]}
    held = plan(replace(fleet([job], alone), outcomes=bad)).assessments[job.key]
    assert held.decision.reason is Reason.POOL_SUSPECTED


def admitted(limits: FleetLimits, tenants: list[str], target: Placement) -> list[str]:
    """Which tenants' jobs may begin a move, one after another in one cycle."""
    begun = []
    for number, tenant in enumerate(tenants):
        job = of(tenant, str(number))
        if limits.limit_on(Intent.SAVE, job, target) is None:
            limits.admit(job, target, demanded=False)
            begun.append(tenant)
    return begun


def test_a_pool_where_nothing_was_delivered_yet_is_tried_by_few() -> None:
    there = Placement("a10g", 4, 1)
    policy = auto_policy(maxConcurrentMigrations=50)
    limits = FleetLimits([], policy, NOW)
    assert admitted(limits, ["team-0"] * 25 + ["team-1"] * 25, there) == ["team-0", "team-0", "team-1"]
    limit = limits.limit_on(Intent.SAVE, of("team-2"), there)
    assert limit is not None and limit.reason is Reason.POOL_UNPROVEN
    assert "no job of this size has moved to a10g with success yet" in limit.text(NOW)
    assert admitted(limits, ["team-2"], Placement("t4", 4, 1)) == ["team-2"], "another pool is another matter"
    failed = FleetLimits(ledger(BAD, pools=1), policy, NOW)
    assert len(admitted(failed, ["team-0", "team-1"] * 25, there)) == 3, "one failure is neither proof nor a pattern"


def test_a_pool_that_has_delivered_is_not_slowed() -> None:
    policy = auto_policy(maxConcurrentMigrations=50)
    limits = FleetLimits(ledger(GOOD, pools=1), policy, NOW)
    assert len(admitted(limits, ["team-0", "team-1"] * 25, Placement("a10g", 4, 1))) == 50
    gangs = FleetLimits(ledger(GOOD, pools=1), policy, NOW)
    assert len(admitted(gangs, ["team-0", "team-1"] * 25, Placement("a10g", 16, 4))) == 3, "it has proven no network"
    off = FleetLimits([], auto_policy(maxConcurrentMigrations=50, circuitBreaker={"maxRolledBackShare": "1"}), NOW)
    assert len(admitted(off, ["team-0"] * 50, Placement("a10g", 4, 1))) == 50, "who does not want to know is not slowed"


def suspicion(limits: FleetLimits) -> Suspected:
    found = limits.against("a10g")
    assert isinstance(found, Suspected)
    return found


def test_failures_of_moves_that_were_under_way_together_count_as_one() -> None:
    """Ten moves begin at once; their verdicts come over two hours. Then each trial counts by itself."""
    began = NOW - 20 * 3600.0

    def failed(name: str, started: float, finished: float, tenant: str) -> Job:
        history = (entry(BAD, finished, started_at=started),)
        return replace(running(name=name, history=history), key=JobKey(tenant, name))

    burst = [failed(str(n), began, began + 900.0 + 700.0 * n, f"team-{n % 2}") for n in range(10)]
    last = began + 900.0 + 700.0 * 9
    assert suspicion(FleetLimits(burst, auto_policy(), NOW)).next_trial == last + 3600.0
    trial = failed("trial", last + 3600.0, last + 5000.0, "team-7")
    assert suspicion(FleetLimits([*burst, trial], auto_policy(), NOW)).next_trial == last + 5000.0 + 2 * 3600.0


@pytest.mark.parametrize("hours", [12.0, 23.9, 24.2, 30 * 24.0])
def test_suspicion_stays_until_a_trial_delivers(hours: float) -> None:
    """Also when the failures are long ago, their jobs are gone, and the operator was started anew."""
    kept = outcomes_of(ledger(*[BAD] * 10, pools=1), {}, NOW)
    later = NOW + hours * 3600.0
    limits = FleetLimits([], auto_policy(), later, outcomes=kept)
    assert isinstance(limits.against("a10g"), Suspected)
    assert admitted(limits, ["team-0", "team-1", "team-9"] * 7, Placement("a10g", 4, 1)) == ["team-0"]
    tried = running(name="tried", history=(entry(GOOD, later - 60.0),))
    mended = FleetLimits([tried], auto_policy(maxConcurrentMigrations=50), later, outcomes=kept)
    assert mended.against("a10g") is None
    begun = admitted(mended, ["team-0", "team-1", "team-8"] * 10, Placement("a10g", 4, 1))
    assert begun.count("team-8") == 10
    assert begun.count("team-0") == begun.count("team-1") == 1, "whose own jobs failed there tries with one first"


def test_what_is_kept_of_one_tenant_is_not_pushed_out_by_the_moves_of_others() -> None:
    own = ledger(BAD, BAD, age=7200.0, pools=1, tenants=1)
    others = [
        replace(
            running(name=f"good-{n}", history=(entry(GOOD, NOW - 3600.0 + n),)), key=JobKey(f"other-{n % 3}", str(n))
        )
        for n in range(90)
    ]
    kept = outcomes_of([*own, *others], {}, NOW)
    assert len(kept["a10g"]) == MAX_OUTCOMES
    limits = FleetLimits([], auto_policy(), NOW - 3600.0 + 90.0, outcomes=kept)
    limits.admit(of("team-0"), Placement("a10g", 4, 1), demanded=False)
    assert isinstance(refused(limits, "team-0", "a10g"), Suspected)
    assert refused(limits, "other-1", "a10g") is None
