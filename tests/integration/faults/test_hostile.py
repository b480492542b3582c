"""Input that means harm: what pods answer, what users write, what nodes claim. One operator with a job for each, and
with one that means well: that one moves and is verified all the while.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from tests.integration.faults.fleet import A10G, A100, Tenant
from tests.integration.faults.impostor import Behave, Impostor, drips, move, pours, says
from tests.integration.faults.site import Site
from tests.integration.runtime.harness import eventually

pytestmark = pytest.mark.cluster

SECONDS = 400.0


def page(**values: str) -> bytes:
    """A page with all that a decision needs, but for these values."""
    lines = {
        "rightpool_samples_total": "{n}",
        "rightpool_steps_total": "{n}",
        "rightpool_step_seconds_sum": "{n}",
        "rightpool_step_seconds_count": "{n}",
        'rightpool_chip_busy_ratio{chip="0"}': "0.98",
        **values,
    }
    return "".join(f"{name} {value}\n" for name, value in lines.items()).encode()


def counting(**values: str) -> Behave:
    """A page whose counters grow."""
    said = [0]

    def behave(connection: object, over: object) -> None:
        said[0] += 1000
        says(page(**values).replace(b"{n}", str(said[0]).encode()))(connection, over)  # type: ignore[arg-type]

    return behave


NOISE = random.Random(1).randbytes(1 << 16)
SIDECARS: dict[str, Behave] = {
    "noise": says(NOISE),
    "noise-as-page": says(b"", head=NOISE),
    "endless": pours(b"rightpool_steps_total 1\n" * 1000),
    "endless-line": pours(b"x" * 65536),
    "drips": drips,
    "redirect": says(b"", head=b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"),
    "packed": says(b"\x1f\x8b" * 1000, head=b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"),
    "label": says(b'rightpool_chip_busy_ratio{chip="' + b"9" * 900_000 + b'"} 1\n'),
    "labels": says(b"".join(b'rightpool_chip_busy_ratio{chip="%d"} 1\n' % n for n in range(20_000))),
    "nan": counting(rightpool_samples_total="NaN", rightpool_steps_total="NaN"),
    "infinite": counting(rightpool_samples_total="+Inf", rightpool_step_seconds_sum="-Inf"),
    "negative": counting(rightpool_samples_total="-{n}", rightpool_steps_total="-{n}"),
    "largest": counting(rightpool_samples_total="1.7e308", rightpool_step_seconds_sum="1.7e308"),
    "least": counting(rightpool_samples_total="5e-324", rightpool_step_seconds_sum="5e-324"),
    "unicode": says("rightpool_samples_total٣ ٣\n".encode()),
}
# What can't be read is not heard; what can't have been measured is missing.
REASONS = {"NoTelemetry", "StaleTelemetry", "PartialTelemetry", "WarmingUp"}


@pytest.fixture
def impostors() -> Iterator[Callable[[str, Behave], Impostor]]:
    made: list[Impostor] = []

    def begin(address: str, behave: Behave) -> Impostor:
        made.append(Impostor(address, behave))
        return made[-1]

    yield begin
    for impostor in made:
        impostor.close()


def moves(tenant: Tenant, name: str) -> None:
    """One that means well is looked after as if it were alone."""
    eventually(lambda: tenant.outcomes(name) == ["Verified"] and tenant.settled(name), SECONDS, f"{name} moves")
    assert tenant.pool(name) == A10G


def test_sidecars(site: Site, tenant: Tenant, impostors: Callable[[str, Behave], Impostor]) -> None:
    operator = site.operate()
    for name in SIDECARS:
        tenant.train(name, play={"silent": "true"})  # until they lie, they say nothing
    for name in SIDECARS:
        eventually(lambda name=name: tenant.settled(name), SECONDS, name)  # type: ignore[misc]
    liars = {}
    for number, (name, behave) in enumerate(SIDECARS.items(), start=1):
        liars[name] = impostors(f"127.94.64.{number}", behave)
        move(tenant, tenant.pods(name)[0]["metadata"]["name"], liars[name].address)
    before = {name: tenant.uids(name) for name in SIDECARS}
    # Some answer so late that all are read less often than asked for; a longer window holds enough all the same.
    tenant.train("honest", profiling={"interval": "1s", "window": "20s"})
    moves(tenant, "honest")
    for name, liar in liars.items():
        eventually(lambda liar=liar: len(liar.asked) > 3, SECONDS, f"{name} is asked")  # type: ignore[misc]
        eventually(lambda name=name: profiled(tenant, name) in REASONS, SECONDS, f"{name} is not believed")  # type: ignore[misc]
        assert (tenant.outcomes(name), tenant.phase(name), tenant.pool(name)) == ([], None, A100)
        assert tenant.uids(name) == before[name]
    assert operator.alive


def profiled(tenant: Tenant, name: str) -> str | None:
    condition = tenant.condition(name, "Profiled")
    return None if condition.get("status") == "True" else condition.get("reason")
