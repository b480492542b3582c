"""Servers of the fleet are read by their own pages, and their records of demand go on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration, Phase
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.revision import Revision
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.profiles.answers import PageProblem
from rightpool.profiles.demand import Demanded
from rightpool.profiles.sample import RevisionKey
from rightpool.profiles.served import RequestCounter, ServedWindow, ServerCounts
from rightpool.runtime.act.demand_records import DemandRecords
from rightpool.runtime.observe.server_feed import ServerFeed
from rightpool.telemetry.server_pages import PageFailure, PastDemand, ServerReading, ServerTarget
from rightpool.telemetry.sources.servers.dialect import ServerDialect
from rightpool.telemetry.sources.servers.dialects import DIALECTS
from tests.patience import eventually
from tests.unit.planning.jobs import changed, running
from tests.unit.runtime.act.test_chargeback_books import Cluster, Leader

NOW = 20_000 * 86_400.0


class Reader:
    """Answers what the test sets."""

    def __init__(self) -> None:
        self.asked: list[Sequence[ServerTarget]] = []
        self.pasts: list[tuple[JobKey, str, float]] = []
        self.failure: PageFailure | None = None
        self.past_counts: PastDemand = {}
        self.counts = ServerCounts({RequestCounter.REQUESTS: 45.0}, {}, {})

    def read_servers(self, targets: Sequence[ServerTarget], now: float) -> ServerReading:
        self.asked.append(targets)
        keys = [target.key for target in targets]
        if self.failure is not None:
            return ServerReading(failures=dict.fromkeys(keys, self.failure))
        windows = {key: ServedWindow(now, 15.0, self.counts, 1, True) for key in keys}
        return ServerReading(windows, dict.fromkeys(keys, DIALECTS[0]))

    def past(self, key: JobKey, dialect: ServerDialect, begin: float, end: float) -> PastDemand:
        self.pasts.append((key, dialect.name, begin))
        return self.past_counts


SPEC = ProfiledJobSpec.model_validate(
    {
        "workload": {
            "server": {
                "port": 8000,
                "metrics": {"port": 8002, "path": "/stats", "dialect": "Triton"},
                "template": {
                    "spec": {
                        "containers": [{"name": "s", "image": "s:1", "readinessProbe": {"tcpSocket": {"port": 1}}}]
                    }
                },
            }
        },
    }
)
SERVER = changed(running(name="ranker"), spec=SPEC)
KEY = SERVER.key


def pod(name: str, **fields: Any) -> Any:
    return SimpleNamespace(
        **{"name": name, "ip": "10.0.0.1", "ready": True, "done": False, "deleting": False, **fields}
    )


class Operator:
    """One process that leads."""

    def __init__(self, cluster: Cluster) -> None:
        self.reader = Reader()
        self.records = DemandRecords(cluster, Leader(), "rightpool-system")  # type: ignore[arg-type]
        self.feed = ServerFeed(self.reader, self.records, lambda _key, _number: self.pods)
        self.pods = [pod("a"), pod("b", ready=False), pod("c", deleting=True), pod("d", ip=None)]

    def cycle(self, now: float, *jobs: Job) -> None:
        self.feed.cycle(jobs, {}, now)
        reading = self.feed._reading
        eventually(lambda: reading is None or reading.done())


def test_ready_pods_are_read_every_quarter_of_a_minute_and_nothing_of_jobs() -> None:
    operator = Operator(Cluster())
    for second in range(0, 61, 5):
        operator.cycle(NOW + second, SERVER, running(name="trainer"))
    assert len(operator.reader.asked) == 5
    ((target,), *_) = operator.reader.asked
    assert (target.key, target.pods) == (RevisionKey(*KEY, 1), (("a", "10.0.0.1"),))
    assert (target.port, target.path) == (8002, "/stats")
    assert target.dialect is DIALECTS[0]
    operator.feed.close()


def test_what_is_still_known_elsewhere_comes_before_what_is_new() -> None:
    operator = Operator(Cluster())
    slot = round(NOW / 15)
    operator.reader.past_counts = {Demanded.REQUESTS: {slot - 9000: 7.0, slot - 4: 30.0}}
    for second in range(0, 150, 15):
        operator.cycle(NOW + second, SERVER)
    assert operator.reader.pasts == [(KEY, "Triton", NOW + 15 - 7 * 86_400)]
    record = operator.records.of(KEY)
    assert record is not None
    counts = record.counts(NOW + 135)
    known = np.flatnonzero(~np.isnan(counts)) - len(counts)
    assert counts[known[-1]] == 45.0
    assert -4 - 9 in known
    assert counts[-4 - 9] == 30.0
    operator.feed.close()
    cluster: Any = operator.records._client
    assert len(cluster.objects) == 1  # what is young is stored when the process ends
    again = Operator(cluster)
    for second in range(300, 360, 15):
        again.cycle(NOW + second, SERVER)
    ((_, _, begin),) = again.reader.pasts
    assert NOW + 60 <= begin <= NOW + 150  # its gap alone
    again.feed.close()


def test_what_is_known_elsewhere_is_asked_again_of_a_server_that_was_made_anew() -> None:
    operator = Operator(Cluster())
    for second in range(0, 60, 15):
        operator.cycle(NOW + second, SERVER)
    operator.cycle(NOW + 60)
    for second in range(75, 135, 15):
        operator.cycle(NOW + second, SERVER)
    assert len(operator.reader.pasts) == 2
    operator.feed.close()


def test_what_was_to_be_asked_of_a_server_is_not_asked_of_one_that_was_made_anew() -> None:
    operator = Operator(Cluster())
    for second in range(0, 150, 15):
        operator.cycle(NOW + second, SERVER)
    operator.feed.close()
    cluster: Any = operator.records._client
    again = Operator(cluster)
    again.cycle(NOW + 300, SERVER)
    again.cycle(NOW + 302, SERVER)  # the gap of its record is to be asked for with the next reading
    again.cycle(NOW + 304)
    for second in range(315, 375, 15):
        again.cycle(NOW + second, SERVER)
    ((_, _, begin),) = again.reader.pasts
    assert begin < NOW - 6 * 86_400  # all of it: the record is another one
    again.feed.close()


def test_a_page_that_is_gone_is_a_gap_and_said_once(caplog: Any) -> None:
    operator = Operator(Cluster())
    operator.reader.failure = PageFailure(PageProblem.UNREACHABLE, "pod a: HTTP 404")
    for second in range(0, 150, 15):
        operator.cycle(NOW + second, SERVER)
    assert [record.getMessage() for record in caplog.records] == [
        "servers: MetricsUnreachable of ns/ranker: pod a: HTTP 404"
    ]
    record = operator.records.of(KEY)
    assert record is not None
    assert np.isnan(record.counts(NOW + 150)).all()
    operator.feed.close()


def test_who_does_not_lead_records_nothing() -> None:
    operator = Operator(Cluster())
    operator.cycle(NOW, SERVER)
    operator.feed.follow()
    assert operator.records.of(KEY) is None
    operator.feed.close()


def test_what_is_answered_stays_the_same_object_while_it_is_the_same_and_goes_where_nothing_is_read() -> None:
    operator = Operator(Cluster())
    given = []
    for second in range(0, 600, 15):
        operator.cycle(NOW + second, SERVER)
        given.append(operator.feed.answers(SERVER))
    assert given[0] is None
    known = [answers for answers in given if answers is not None]
    assert len({id(answers) for answers in known}) == 1
    assert known[0].requests_per_second == 3.0
    assert known[0].p99 is None
    operator.reader.failure = PageFailure(PageProblem.NO_DIALECT, "pod a")
    for second in range(600, 660, 15):
        operator.cycle(NOW + second, SERVER)
    failed = operator.feed.answers(SERVER)
    assert failed is not None
    assert (failed.requests_per_second, failed.problem) == (None, PageProblem.NO_DIALECT)
    operator.pods = []
    for second in range(660, 1260, 15):
        operator.cycle(NOW + second, SERVER)
    assert operator.feed.answers(SERVER) is None
    operator.feed.close()


def moving(phase: Phase) -> Job:
    """From one pool to another."""
    here = SERVER.state.revision
    assert here is not None
    there = replace(here, revision=2, placement=replace(here.placement, pool="l40s"))
    move = Migration("d-1", Action.MOVE, phase, here, there, NOW, NOW, Reason.CHEAPER_POOL_MEETS_TARGETS)
    return SERVER.with_state(replace(SERVER.state, migration=move))


def test_a_new_side_is_read_before_it_gets_requests_and_more_often_then() -> None:
    """So that what comes first is counted, and seen in the same cycle."""
    operator = Operator(Cluster())
    for second in range(0, 30, 5):
        operator.cycle(NOW + second, moving(Phase.SURGING))
    assert [[target.key.revision for target in targets] for targets in operator.reader.asked] == [[1, 2], [1, 2]]
    assert operator.feed.pace == math.inf
    for second in range(30, 60, 5):
        operator.cycle(NOW + second, job := moving(Phase.SHARING))
        assert len(operator.feed.seen(job).sides) == (second - 25) // 5
    assert operator.feed.pace == 5.0
    holding = moving(Phase.HOLDING)
    operator.cycle(NOW + 59, holding)
    assert operator.feed.pace == 5.0
    operator.cycle(NOW + 60, holding)
    assert operator.feed.pace == math.inf
    operator.feed.close()


@pytest.mark.parametrize(("phase", "revision"), [(Phase.SHARING, 1), (Phase.HOLDING, 2)], ids=["Sharing", "Holding"])
def test_what_it_answers_is_of_the_side_that_has_the_requests(phase: Phase, revision: int) -> None:
    operator, job = Operator(Cluster()), moving(phase)
    for second in range(0, 150, 15):
        operator.cycle(NOW + second, job)
    answers = operator.feed.answers(job)
    assert answers is not None and answers.revision == revision


def test_what_a_side_answered_beside_another_is_not_what_comes_in() -> None:
    """Each got 45 requests in 15 s, and then one alone gets 90."""
    operator = Operator(Cluster())
    for second in range(0, 60, 15):
        operator.cycle(NOW + second, moving(Phase.SHARING))
    held = moving(Phase.HOLDING)
    assert held.state.migration is not None
    held = held.with_state(replace(held.state, migration=replace(held.state.migration, phase_since=NOW + 50)))
    operator.reader.counts = ServerCounts({RequestCounter.REQUESTS: 90.0}, {}, {})
    for second in range(60, 120, 15):
        operator.cycle(NOW + second, held)
        answers = operator.feed.answers(held)
        assert answers is None or answers.revision == 1 or answers.requests_per_second == 6.0
    answers = operator.feed.answers(held)
    assert answers is not None and (answers.revision, answers.requests_per_second) == (2, 6.0)
    operator.feed.close()


def test_batches_of_both_sides_of_a_move_are_remembered() -> None:
    """So that a place that was too slow is not predicted again."""
    operator, job = Operator(Cluster()), moving(Phase.SHARING)
    batches = {"requests": 40.0, "batched": 40.0, "batches": 10.0, "timedBatches": 10.0, "batchSeconds": 0.5}
    operator.reader.counts = ServerCounts({RequestCounter(name): count for name, count in batches.items()}, {}, {})
    for second in range(0, 150, 15):
        operator.cycle(NOW + second, job)
    record = operator.records.of(KEY)
    assert record is not None
    assert [record.loads.at(f"{pool}/4") is not None for pool in ("a100", "l40s")] == [True, True]
    operator.feed.close()


def test_windows_of_the_revision_that_answers_say_how_long_its_batches_take() -> None:
    """As long as those of its profiling: five minutes."""
    operator = Operator(Cluster())
    counts = {RequestCounter.BATCH_SECONDS: 0.06, RequestCounter.TIMED_BATCHES: 15.0}
    load = {RequestCounter.BATCHED: 45.0, RequestCounter.BATCHES: 15.0, RequestCounter.ERRORS: 9.0}
    operator.reader.counts = ServerCounts({RequestCounter.REQUESTS: 45.0, **counts, **load}, {}, {})
    given = []
    for second in range(0, 945, 15):
        operator.cycle(NOW + second, SERVER)
        given.append(operator.feed.seen(SERVER).service)
    assert [len(windows) for windows in given[::20]] == [0, 1, 2, 3] and len({id(one) for one in given}) == 4
    window = given[-1][-1]
    assert (window.load, window.seconds) == (pytest.approx(3.0), pytest.approx(0.004))
    assert (window.requests, window.failed) == (pytest.approx(900.0, rel=0.1), pytest.approx(180.0, rel=0.1))
    other = SERVER.with_state(replace(SERVER.state, revision=replace(revision_of(SERVER), revision=2)))
    operator.cycle(NOW + 945.0, other)
    assert operator.feed.seen(other).service == ()
    operator.feed.close()


def revision_of(job: Job) -> Revision:
    assert job.state.revision is not None
    return job.state.revision
