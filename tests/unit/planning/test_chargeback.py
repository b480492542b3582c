"""The books of a namespace: every dollar once, whatever is lost, moved or deleted in between."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightpool.api.account import Account
from rightpool.api.placement import Placement
from rightpool.planning.accounting.chargeback import (
    DAYS,
    EARLIER,
    KEYS,
    MOST_JOBS,
    OTHER,
    Booked,
    Charge,
    Chargeback,
)
from rightpool.planning.job import Job
from tests.unit.planning.jobs import DAY, NOW, changed, running

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


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_the_sum_of_the_rows_is_the_sum_of_the_accounts(steps: list[tuple[str, int, float, float]]) -> None:
    jobs = {name: job(name, 0.0) for name in "abcde"}
    gone = 0.0
    books, now = Chargeback(), NOW
    stored = (books.table(), books.bookmarks())
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
            books = Chargeback.read(*stored)
        elif kind == "next day":
            now += DAY
            books.age(now)
        elif kind == "delete":
            books.book(one, "", now)
            stored = (books.table(), books.bookmarks())
            gone += one.state.account.spent
            del jobs[name]
        elif kind == "save books":
            stored = (books.table(), books.bookmarks())
        for each in jobs.values():
            books.book(each, "", now)
        books.forget({each.uid for each in jobs.values()})
        assert total(books).spent == pytest.approx(
            gone + sum(each.state.account.spent for each in jobs.values()), abs=1e-3
        )


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
    """An object of the API server has a megabyte."""
    books = Chargeback()
    for number in range(MOST_JOBS):
        uid = f"{number * 2654435761 % 2**32:08x}-1234-4abc-8def-{number:012x}"
        books.booked[uid] = Booked(number * 1.2345678, -number * 0.777, number * 3600.5, number * 1801.3)
    assert len(books.bookmarks()) < 600_000
    assert not books.book(job("one more", 1.0), "", NOW)


@pytest.mark.parametrize(
    ("table", "bookmarks"),
    [("day,team\n", None), ("", None), (Chargeback().table() + "2026-01-01,a\n", None), (Chargeback().table(), b"no")],
)
def test_books_that_cannot_be_read_are_no_books(table: str, bookmarks: bytes | None) -> None:
    with pytest.raises(ValueError):
        Chargeback.read(table, bookmarks)
