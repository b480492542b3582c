"""`rightpool release`."""

from __future__ import annotations

import pytest

from rightpool.cli.connection import CliError
from rightpool.cli.release import release
from rightpool.cluster.resources import PROFILED_JOBS
from tests.unit.cli.cluster import job
from tests.unit.cli.test_recommend import KEY, Patches

REF = {"apiVersion": "batch/v1", "kind": "Job", "name": "resnet50"}


@pytest.mark.parametrize(("original", "words"), [(None, "was not changed"), ("{}", "goes back to where it was")])
def test_it_asks_for_exactly_the_job_that_was_read(original: str | None, words: str) -> None:
    client = Patches()
    body = client.add(PROFILED_JOBS, job(status={"adopted": {"uid": "u", "original": original}}))
    body["spec"] = {"workloadRef": REF}
    assert words in release(client, KEY)  # type: ignore[arg-type]
    (patch,) = client.patches
    about = {"resourceVersion": body["metadata"]["resourceVersion"], "annotations": {"rightpool.dev/release": "true"}}
    assert patch == {"metadata": about}


def test_what_the_operator_has_made_is_not_released() -> None:
    client = Patches()
    client.add(PROFILED_JOBS, job())
    with pytest.raises(CliError, match="delete it instead"):
        release(client, KEY)  # type: ignore[arg-type]
