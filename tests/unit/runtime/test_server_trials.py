"""A trial of a server is read as the server is: what its batches take is known of its place, and it is no demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rightpool.api.placement import Placement
from rightpool.api.trial_run import TrialRun
from rightpool.planning.jobs.job import Job
from rightpool.profiles.sample import RevisionKey
from rightpool.profiles.served import RequestCounter, ServedWindow, ServerCounts
from rightpool.runtime.observe.server_feed import ServerFeed
from rightpool.runtime.observe.server_trials import TrialAnswers
from rightpool.telemetry.server_pages import ServerReading, ServerTarget
from rightpool.telemetry.sources.servers.dialects import DIALECTS
from tests.unit.planning.jobs import running
from tests.unit.runtime.act.test_chargeback_books import Cluster
from tests.unit.runtime.test_server_feed import NOW, SERVER, Operator

RUN = TrialRun(1, Placement("a10g", 1, 1), NOW, 60.0, load=16)
TRIED = SERVER.with_state(replace(SERVER.state, trial=RUN, trials=1))
TRIAL = replace(running(name="ranker-t1"), on_trial=True)
PLACE = "a10g/1"


def counts(seconds: float, load: float = 4.0, failed: float = 0.0) -> ServerCounts:
    """Of batches of so many, each of which takes so long."""
    found = {"requests": 100.0, "errors": failed, "batched": 100.0, "batches": 100.0 / load}
    found |= {"timedBatches": 100.0 / load, "batchSeconds": 100.0 / load * seconds}
    return ServerCounts({RequestCounter(name): value for name, value in found.items()}, {}, {})


class Tried(Operator):
    """An operator of which the server answers in 20 ms, and its trial in 10 ms."""

    def __init__(self, failed: float = 0.0) -> None:
        super().__init__(Cluster())
        self.failed, self.silent = failed, False
        self.reader.read_servers = self.read  # type: ignore[method-assign]
        self.asked: list[Sequence[ServerTarget]] = []

    def read(self, targets: Sequence[ServerTarget], now: float) -> ServerReading:
        self.asked.append(targets)
        windows = {}
        for target in targets:
            here = target.key.job == "ranker"
            counted = counts(0.020 if here else 0.010, failed=0.0 if here else self.failed)
            if self.silent and not here:
                counted = counted.scaled(0.0)
            windows[target.key] = ServedWindow(now, 5.0, counted, 1, True)
        return ServerReading(windows, dict.fromkeys(windows, DIALECTS[0]))

    def last(self, seconds: float, *jobs: Job, begin: float = 0.0) -> None:
        for number in range(round(seconds / 5.0)):
            self.cycle(NOW + begin + 5.0 * number, *jobs)


@pytest.fixture
def operator() -> Tried:
    return Tried()


def shown(feed: ServerFeed) -> TrialAnswers | None:
    return feed.seen(TRIED).trial


def test_what_its_batches_take_is_known_of_its_place_and_compared(operator: Tried) -> None:
    operator.last(60.0, TRIED, TRIAL)
    early = shown(operator.feed)
    assert early is not None and (early.since, early.over) == (NOW - 5.0, False), "it goes on"
    operator.last(15.0, TRIED, TRIAL, begin=60.0)
    found, record = shown(operator.feed), operator.records.of(TRIED.key)
    assert found is not None and found.rate is not None and found.against is not None and record is not None
    assert found.rate / found.against == pytest.approx(2.0, rel=0.05)
    there = record.loads.at(PLACE)
    assert there is not None and there.seconds[0] == pytest.approx(0.010, rel=0.01)
    (_, trial), *_ = operator.asked
    assert (trial.key, trial.port, trial.path) == (RevisionKey("ns", "ranker-t1", 1), 8002, "/stats")
    assert not operator.feed.seen(SERVER).trial, "it is of the trial that is under way"
    operator.feed.close()


def test_it_is_no_demand_and_no_server_of_its_own(operator: Tried) -> None:
    operator.last(60.0, TRIED, TRIAL)
    record = operator.records.of(TRIED.key)
    assert record is not None and record.peak(NOW + 60.0) == pytest.approx(20.0, rel=0.1), "100 in 5 s"
    assert operator.records._maps.kept is not None
    assert set(operator.records._maps.kept) == {TRIED.key}
    operator.feed.close()


def test_until_it_answers_nothing_counts(operator: Tried) -> None:
    operator.silent = True
    operator.last(300.0, TRIED, TRIAL)
    assert shown(operator.feed) is None
    operator.feed.close()


def test_one_whose_requests_fail_shows_nothing() -> None:
    operator = Tried(failed=40.0)
    operator.last(100.0, TRIED, TRIAL)
    found, record = shown(operator.feed), operator.records.of(TRIED.key)
    assert found == TrialAnswers(NOW - 5.0, failed="40% of its sample requests failed")
    assert record is not None and record.loads.at(PLACE) is None
    operator.feed.close()


def test_a_job_of_that_name_which_is_no_trial_is_not_read(operator: Tried) -> None:
    operator.last(20.0, TRIED, replace(TRIAL, on_trial=False))
    assert {target.key.job for targets in operator.asked for target in targets} == {"ranker"}
    operator.feed.close()
