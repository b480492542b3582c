"""The books of a namespace: every dollar once, whatever is lost, moved or deleted in between."""

import base64
import gzip
from dataclasses import replace
from datetime import date
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.estimate import Z80
from rightpool.api.ledger import MAX_MESSAGES, LedgerEntry, Outcome
from rightpool.api.placement import Placement
from rightpool.planning.books.charge import EARLIER, Charge
from rightpool.planning.books.chargeback import (
    DAYS,
    JOBS_A_DAY,
    KEYS,
    MOST_JOBS,
    MOST_MOVES,
    OTHER,
    OTHER_JOBS,
    Booked,
    Chargeback,
)
from rightpool.planning.jobs.job import Job
from rightpool.planning.work.unsaved import appended
from rightpool.reporting.chargeback_object import JOBS, MOVES, config_map, read_books
from tests.unit.planning.jobs import DAY, NOW, changed, entry, running

HOUR = 3600.0


def job(name: str, spent: float, saved: float = 0.0, chips: float = 0.0, pool: str = "a100") -> Job:
    where = Placement(pool, 4, 1)
    made = running(Placement("a100", 4, 1), name=name)
    assert made.state.revision is not None
    ref = replace(made.state.revision, placement=where)
    return changed(made, revision=ref, account=Account(spent=spent, saved=saved, chip_seconds=chips))


def total(books: Chargeback) -> Charge:
    sums = Charge()
    for charge in books.totals().values():
        sums = sums.plus(charge)
    return sums


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["spend", "move", "save books", "crash", "delete", "next day"]),
        st.integers(0, 4),
        st.floats(0, 100.0),
        st.floats(-50.0, 50.0),
    ),
    max_size=60,
)


@given(STEPS)
def test_the_sum_of_the_rows_is_the_sum_of_the_accounts(steps: list[tuple[str, int, float, float]]) -> None:
    jobs = {name: job(name, 0.0) for name in "abcde"}
    gone = 0.0
    books, now = Chargeback(), NOW
    stored = config_map("system", "ns", books, None)
    for kind, number, dollars, saved in steps:
        name = sorted(jobs)[number % len(jobs)] if jobs else None
        if name is None:
            break
        one = jobs[name]
        if kind == "spend":
            account = one.state.account
            account = replace(account, spent=account.spent + dollars, saved=account.saved + saved)
            jobs[name] = changed(one, account=account)
        elif kind == "move":
            assert one.state.revision is not None
            ref = replace(one.state.revision, placement=Placement("a10g", 4, 1))
            jobs[name] = changed(one, revision=ref)
        elif kind == "crash":
            books = read_books(stored)
        elif kind == "next day":
            now += DAY
            books.age(now)
        elif kind == "delete":
            books.book(one, "", now)
            stored = config_map("system", "ns", books, None)
            gone += one.state.account.spent
            del jobs[name]
        elif kind == "save books":
            stored = config_map("system", "ns", books, None)
        for each in jobs.values():
            books.book(each, "", now)
        books.forget({each.uid for each in jobs.values()})
        spent = gone + sum(each.state.account.spent for each in jobs.values())
        assert total(books).spent == pytest.approx(spent, abs=1e-3)
        assert sum(each.spent for each in books.jobs.totals().values()) == pytest.approx(spent, abs=1e-3)


def test_what_a_job_spends_is_charged_to_where_it_is() -> None:
    books = Chargeback()
    books.book(job("a", 10.0), "vision", NOW)
    books.book(job("a", 15.0, pool="a10g"), "vision", NOW)
    assert {(key.team, key.pool): charge.spent for key, charge in books.totals().items()} == {
        ("vision", "a100"): 10.0,
        ("vision", "a10g"): 5.0,
    }


def test_a_correction_of_what_was_saved_is_a_loss_and_counters_only_grow() -> None:
    books = Chargeback()
    books.book(job("a", 1.0, saved=10.0), "", NOW)
    books.book(job("a", 2.0, saved=7.0), "", NOW)
    assert total(books)[:3] == (2.0, 10.0, 3.0)
    assert not books.book(job("a", 2.0, saved=7.0), "", NOW), "nothing new"


def test_what_is_booked_outlives_the_job_and_is_bounded() -> None:
    books = Chargeback()
    for day in range(DAYS + 30):
        for number in range(KEYS + 10):
            books.book(job(f"{day}-{number}", 1.0), f"team-{number}", NOW + day * DAY)
        books.forget(())
        books.age(NOW + day * DAY)
    assert books.booked == {}
    assert len(books.rows) <= DAYS + 2 and EARLIER in books.rows
    assert max(len(rows) for rows in books.rows.values()) <= KEYS + 1
    assert any(key.team == OTHER for key in books.totals())
    assert total(books).spent == pytest.approx((DAYS + 30) * (KEYS + 10))
    assert len(books.table()) < 400_000


def test_as_many_jobs_as_an_object_holds() -> None:
    """An object of the API server has a megabyte, for all parts of the books together."""
    books = Chargeback()
    random = Random(1)
    for day in range(DAYS + 1):
        for number in range(JOBS_A_DAY + 30):
            spent, chips = random.random() * 9_000.0, random.random() * 9e6
            name = f"{random.getrandbits(128):032x}-{number}"
            books.book(job(name, spent, random.random() * 500.0, chips), f"team-{number}", NOW + day * DAY)
    books.booked.clear()
    for number in range(MOST_JOBS):
        uid = f"{number * 2654435761 % 2**32:08x}-1234-4abc-8def-{number:012x}"
        books.booked[uid] = Booked(number * 1.2345678, -number * 0.777, number * 3600.5, number * 1801.3)
    jobs, bookmarks = len(books.jobs.stored()), len(books.bookmarks())
    assert jobs < 256 * 1024
    assert bookmarks < 500_000
    assert len(books.table()) + jobs + bookmarks < 1024 * 1024 - 64 * 1024, "with room for the moves"
    assert not books.book(job("one more", 1.0), "", NOW)


def test_the_jobs_of_a_day_that_have_spent_most_are_kept_apart() -> None:
    books = Chargeback()
    for number in range(JOBS_A_DAY + 10):
        books.book(job(f"job-{number}", float(number)), "", NOW)
    books = read_books(config_map("system", "ns", books, None))
    kept = books.jobs.totals()
    assert kept.keys() == {OTHER_JOBS, *(f"job-{number}" for number in range(10, JOBS_A_DAY + 10))}
    assert kept[OTHER_JOBS].spent == sum(range(10))
    assert books.jobs.totals(date(2027, 1, 16)) == {}


def test_the_job_with_which_a_busy_day_begins_is_not_lost_to_those_that_come_later() -> None:
    """Which job has spent most is known at the end of the day alone."""
    books = Chargeback()
    for number in range(3 * JOBS_A_DAY):
        books.book(job(f"job-{number}", 1.0), "", NOW)
    books.book(job("job-0", 100.0), "", NOW + 60.0)
    books.book(job("job-0", 101.0), "", NOW + DAY)
    assert books.jobs.totals()["job-0"].spent == 101.0
    assert max(len(rows) for rows in books.jobs.rows.values()) <= JOBS_A_DAY + 1


def moved(name: str, *ended: float, **fields: Any) -> Job:
    """A job with moves that ended then."""
    history = tuple(
        LedgerEntry.from_dict(entry(Outcome.VERIFIED, at, id=f"d-{number}", action=Action.MOVE, **fields).to_dict())
        for number, at in enumerate(ended)
    )
    return changed(running(name=name), history=history)


def test_what_moves_promised_and_delivered_outlives_the_job() -> None:
    books = Chargeback()
    one = moved("a", NOW - 60.0, NOW, predicted_throughput=900.0, realised_throughput=880.0)
    assert books.moves.book(one)
    assert not books.moves.book(one), "nothing new"
    books = read_books(config_map("system", "ns", books, None))
    assert not books.moves.book(one), "and nothing twice after a restart"
    assert [(move.job, move.entry) for move in books.moves] == [("a", each) for each in one.state.history]


def test_a_result_that_is_corrected_replaces_the_one_before() -> None:
    books = Chargeback()
    books.moves.book(moved("a", NOW, realised_throughput=880.0))
    assert books.moves.book(moved("a", NOW, realised_throughput=700.0))
    assert [move.entry.realised_throughput for move in books.moves] == [700.0]


def test_what_a_move_has_lost_is_known_after_the_next_one_was_given_up() -> None:
    """Its steps catch up while an edit supersedes what was planned next."""
    books = Chargeback()
    one = moved("a", NOW - 60.0, NOW)
    books.moves.book(one)
    first, second = one.state.history
    corrected = changed(one, history=(replace(first, lost_seconds=90.0), second))
    assert books.moves.book(corrected)
    assert {move.entry.id: move.entry.lost_seconds for move in books.moves} == {"d-0": 90.0, "d-1": 0.0}
    assert not books.moves.book(corrected)


def test_the_words_of_a_move_outlive_its_status() -> None:
    """A status keeps those of its newest entries alone, holds among them."""
    books = Chargeback()
    one = moved("a", NOW, message="12% cheaper", realised_throughput=880.0)
    books.moves.book(one)
    history = one.state.history
    for number in range(MAX_MESSAGES):
        history = appended(history, entry(Outcome.HELD, NOW + 60.0 * number, id=f"h-{number}", reason="x", message="y"))
    assert history[0].message == ""
    assert not books.moves.book(changed(one, history=history)), "nothing new"
    assert [move.entry.message for move in books.moves] == ["12% cheaper"]


def test_a_decision_that_was_given_up_is_no_move() -> None:
    books = Chargeback()
    assert not books.moves.book(changed(running(), history=(entry(Outcome.HELD, NOW),)))
    assert list(books.moves) == []


def test_the_newest_moves_are_kept() -> None:
    books = Chargeback()
    jobs = [moved(f"job-{number}", NOW + number, message="x" * 9_000) for number in range(MOST_MOVES + 50)]
    for _ in range(2):
        for each in jobs:
            books.moves.book(each)
        assert {move.job for move in books.moves} == {f"job-{number}" for number in range(50, MOST_MOVES + 50)}
    assert not any(books.moves.book(each) for each in jobs)
    assert len(books.moves.stored()) < 64 * 1024


@pytest.mark.parametrize("part", [JOBS, MOVES])
@pytest.mark.parametrize(
    "damaged",
    [b"no", gzip.compress(b"no"), gzip.compress(b"{}"), gzip.compress(b"no")[:-4]],
    ids=["not compressed", "no table", "no move", "cut off"],
)
def test_parts_that_cannot_be_read_are_no_books(part: str, damaged: bytes) -> None:
    stored = config_map("system", "ns", Chargeback(), None)
    stored["binaryData"][part] = base64.b64encode(damaged).decode()
    with pytest.raises(ValueError):
        read_books(stored)


def test_books_of_an_older_version_name_no_jobs() -> None:
    books = Chargeback()
    books.book(job("a", 5.0), "", NOW)
    stored = config_map("system", "ns", books, None)
    del stored["binaryData"][JOBS], stored["binaryData"][MOVES]
    read = read_books(stored)
    assert total(read).spent == 5.0
    assert read.jobs.totals() == {}
    read.book(job("a", 8.0), "", NOW)
    assert read.jobs.totals()["a"].spent == 3.0


@pytest.mark.parametrize(
    ("table", "bookmarks"),
    [("day,team\n", None), ("", None), (Chargeback().table() + "2026-01-01,a\n", None), (Chargeback().table(), b"no")],
)
def test_books_that_cannot_be_read_are_no_books(table: str, bookmarks: bytes | None) -> None:
    with pytest.raises(ValueError):
        Chargeback.read(table, bookmarks)


def test_doubts_of_jobs_add_up_as_variances_and_shrink_with_what_is_learned() -> None:
    """Two jobs that are off by $3 and $4; of the first one more is known a day later."""
    books, now = Chargeback(), NOW
    for name, doubt in (("a", 3.0), ("b", 4.0)):
        one = job(name, 0.0)
        account = replace(one.state.account, spent=10.0, saved=20.0, saved_doubt=doubt)
        books.book(changed(one, account=account), "", now)
    low, high = total(books).saved_range
    assert high - low == pytest.approx(2.0 * Z80 * 5.0) and low + high == pytest.approx(2.0 * 40.0)
    one = job("a", 0.0)
    known = replace(one.state.account, spent=11.0, saved=20.0, saved_doubt=0.0)
    books.book(changed(one, account=known), "", now + DAY)
    again = Chargeback.read(books.table(), books.bookmarks())
    low, high = total(again).saved_range
    assert high - low == pytest.approx(2.0 * Z80 * 4.0)
