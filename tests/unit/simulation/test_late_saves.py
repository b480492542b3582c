"""Programs whose saves take longer than they are waited for."""

from datetime import UTC, datetime

from benchmarks.decisions.stories import A100, H100, OFTEN
from benchmarks.decisions.trace import Trace
from benchmarks.decisions.world import BEGAN, HOUR, Maker, pool, world
from rightpool.api.ledger import Outcome
from rightpool.api.placement import Placement
from rightpool.simulation.child import Delays

SLOWER = Delays(save=200.0)
"""A save is waited for for two minutes by default."""


def test_a_job_that_is_late_leaves_with_the_save_that_came_too_late() -> None:
    pools = [pool("base", A100, 3.00), pool("fast", H100, 7.50)]
    rate = Maker(1, "quiet", pools, 8.0).job("base", 4).rate(Placement("base", 4, 1))
    targets = {"deadline": datetime.fromtimestamp(BEGAN + 3.2 * HOUR, UTC).isoformat()}
    job = Maker(1, "quiet", pools, 8.0).job("base", 4, total=rate * 4.0 * HOUR, targets=targets, adaptation=OFTEN)
    job.delays = SLOWER
    simulator, trace = world(pools), Trace()
    simulator.watch = trace
    simulator.add([job])
    simulator.run(BEGAN + 4.2 * HOUR)
    assert [outcome for _, outcome in trace.verdicts[job.job.key]][:2] == [Outcome.HELD, Outcome.VERIFIED]
    assert job.truth.finished_at is not None and job.truth.finished_at < BEGAN + 3.2 * HOUR
    assert job.truth.worked - job.truth.done < 0.05 * job.truth.done, "what was done since that save is done again"


def test_a_job_that_is_to_save_money_is_asked_ever_more_seldom() -> None:
    pools = [pool("base", A100, 3.00), pool("better", A100, 2.25)]
    slow = {"interval": "1m", "window": "10m"}
    job = Maker(1, "quiet", pools, 14.0).job("base", 4, adaptation={"mode": "Auto"}, profiling=slow)
    job.delays, job.step = SLOWER, 60.0
    simulator = world(pools)
    simulator.add([job])
    simulator.run(BEGAN + 12.0 * HOUR)
    (held,) = job.job.state.history
    assert held.outcome is Outcome.HELD
    assert 3 <= held.attempts <= 7
