"""What the pods of a Revision come to, for every mix of pods that step and pods that count samples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool import contract
from rightpool.profiles.sample import Field
from rightpool.telemetry.exposition import parse
from rightpool.telemetry.sources.sidecar_page import PodPage, page_of, reading_of

# Samples a second that a pod counts, None where it counts none, and whether it makes steps that are seen, or says that
# its samples are missing.
_PODS = st.tuples(st.none() | st.integers(0, 1000), st.booleans(), st.booleans())


def page(at: float, rate: int | None, steps: bool, missing: bool) -> PodPage:
    lines = []
    if rate is not None:
        lines.append(f"{contract.SAMPLES} {rate * at}")
    if steps:
        lines.append(f"{contract.STEPS} {at}")
    if missing and rate is None:
        lines.append(f'{contract.FIELD_QUALITY}{{field="{contract.SAMPLES}",quality="{contract.QUALITY_MISSING}"}} 1')
    return page_of(parse("".join(f"{line}\n" for line in lines)), at)


@given(st.lists(_PODS, min_size=1, max_size=8))
def test_a_rate_is_that_of_all_pods_that_step_or_there_is_none(pods: list[tuple[int | None, bool, bool]]) -> None:
    values = reading_of([(page(10.0, *pod), page(20.0, *pod)) for pod in pods], 0.0, 60.0).values
    known = [rate for rate, _, _ in pods if rate is not None]
    uncounted = any(rate is None and (steps or missing) for rate, steps, missing in pods)
    if known and not uncounted:
        assert values[Field.SAMPLES_PER_SECOND] == pytest.approx(sum(known))
    else:
        assert Field.SAMPLES_PER_SECOND not in values
    assert (Field.SAMPLES in values) == (len(known) == len(pods))


def test_others_are_told_of_the_chip_that_they_use_most() -> None:
    lines = "".join(f'{contract.CHIP_OTHERS}{{chip="{chip}"}} {share}\n' for chip, share in (("a", 0.0), ("b", 0.18)))
    pages = [(page_of(parse(lines), 10.0), page_of(parse(lines), 20.0))]
    assert reading_of(pages, 0.0, 60.0).values[Field.OTHERS] == pytest.approx(0.18)
