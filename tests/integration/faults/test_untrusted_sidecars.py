"""Pages of untrusted sidecars. One operator has a job for each kind of page and one job with a correct sidecar, which
is moved and verified as usual.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from tests.integration.faults.fleet import A10G, A100, Tenant
from tests.integration.faults.site import Site
from tests.integration.faults.untrusted_sidecar import Behavior, UntrustedSidecar, drips, pours, says, set_address
from tests.patience import eventually

pytestmark = pytest.mark.cluster


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


def counting(**values: str) -> Behavior:
    """A page whose counters grow."""
    number = [0]

    def behave(connection: object, over: object) -> None:
        number[0] += 1000
        says(page(**values).replace(b"{n}", str(number[0]).encode()))(connection, over)  # type: ignore[arg-type]

    return behave


# Steps, too: a program whose samples alone are impossible is measured in steps.
COUNTS = ("rightpool_samples_total", "rightpool_steps_total", "rightpool_step_seconds_sum")
IMPOSSIBLE = {
    "nan": "NaN",
    "infinite": "+Inf",
    "negative-infinite": "-Inf",
    "negative": "-{n}",
    "largest": "1.7e308",
    "least": "5e-324",
}
NOISE = random.Random(1).randbytes(1 << 16)
SIDECARS: dict[str, Behavior] = {
    "noise": says(NOISE),
    "noise-as-page": says(b"", head=NOISE),
    "endless": pours(b"rightpool_steps_total 1\n" * 1000),
    "endless-line": pours(b"x" * 65536),
    "drips": drips,
    "redirect": says(b"", head=b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"),
    "packed": says(b"\x1f\x8b" * 1000, head=b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"),
    "label": says(b'rightpool_chip_busy_ratio{chip="' + b"9" * 900_000 + b'"} 1\n'),
    "labels": says(b"".join(b'rightpool_chip_busy_ratio{chip="%d"} 1\n' % n for n in range(20_000))),
    **{name: counting(**dict.fromkeys(COUNTS, value)) for name, value in IMPOSSIBLE.items()},
    "unicode": says("rightpool_samples_total٣ ٣\n".encode()),
}
# A page that can't be read is ignored; an impossible value counts as missing.
REASONS = {"NoTelemetry", "StaleTelemetry", "PartialTelemetry", "WarmingUp"}


@pytest.fixture
def sidecars() -> Iterator[Callable[[str, Behavior], UntrustedSidecar]]:
    made: list[UntrustedSidecar] = []

    def begin(address: str, behave: Behavior) -> UntrustedSidecar:
        made.append(UntrustedSidecar(address, behave))
        return made[-1]

    yield begin
    for sidecar in made:
        sidecar.close()


def moves(tenant: Tenant, name: str) -> None:
    """A job with a correct sidecar is moved and verified."""
    eventually(lambda: tenant.outcomes(name) == ["Verified"] and tenant.settled(name), f"{name} moves")
    assert tenant.pool(name) == A10G


def test_sidecars(site: Site, tenant: Tenant, sidecars: Callable[[str, Behavior], UntrustedSidecar]) -> None:
    operator = site.operate()
    for name in SIDECARS:
        tenant.train(name, play={"silent": "true"})  # silent until the untrusted sidecar takes over
    for name in SIDECARS:
        eventually(lambda name=name: tenant.settled(name), name)  # type: ignore[misc]
    servers = {}
    for number, (name, behave) in enumerate(SIDECARS.items(), start=1):
        servers[name] = sidecars(f"127.94.64.{number}", behave)
        set_address(tenant, tenant.pods(name)[0]["metadata"]["name"], servers[name].address)
    before = {name: tenant.uids(name) for name in SIDECARS}
    # Slow answers delay the reading of all pages; a longer window has enough samples all the same.
    tenant.train("correct", profiling={"interval": "1s", "window": "20s"})
    moves(tenant, "correct")
    for name, server in servers.items():
        eventually(lambda server=server: len(server.requests) > 3, f"{name} is asked")  # type: ignore[misc]
        eventually(lambda name=name: profiled(tenant, name) in REASONS, f"{name} is not used")  # type: ignore[misc]
        assert (tenant.outcomes(name), tenant.phase(name), tenant.pool(name)) == ([], None, A100)
        assert tenant.uids(name) == before[name]
    assert operator.alive


def profiled(tenant: Tenant, name: str) -> str | None:
    condition = tenant.condition(name, "Profiled")
    return None if condition.get("status") == "True" else condition.get("reason")
