"""`rightpool explain` of a job that has a variant of its template for another vendor's chips."""

from __future__ import annotations

from rightpool.cli.explain import document
from rightpool.cluster.resources import PROFILED_JOBS
from tests.unit.cli.cluster import condition
from tests.unit.cli.test_explain import explained, output, with_job


def test_where_a_variant_is_used_is_said_and_a_refused_one_is_told() -> None:
    variants = [{"vendor": "NVIDIA", "template": {"spec": {"hostname": "gpu"}}}]
    client = with_job(placement={"variants": variants})
    (body,) = client.objects[PROFILED_JOBS]
    body["status"]["placement"]["vendor"] = "NVIDIA"
    body["status"]["conditions"] = [
        *(entry for entry in body["status"]["conditions"] if entry["type"] != "Degraded"),
        condition("Degraded", "True", "InvalidVariant", "with spec.placement.variants[1].template: unknown field"),
    ]
    found = explained(client)
    assert found.job.variant("NVIDIA") is not None
    assert {candidate["variant"] for candidate in document(found)["candidates"]} == {"NVIDIA"}
    assert any("variants[1].template: unknown field" in note for note in found.notes)
    assert "with the variant for NVIDIA" in output(client)
    assert {candidate["variant"] for candidate in document(explained(with_job()))["candidates"]} == {None}
