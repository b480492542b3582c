"""TemplateChecks: what the API server is asked about variants, and what is made of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.kubernetes import Resource
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.cluster.errors import Invalid
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import VariantRefusal
from rightpool.planning.moves.commands import CheckVariants
from rightpool.planning.moves.transitions import advance
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import AUTO, changed
from tests.unit.runtime.act.world import World, migration
from tests.unit.runtime.makers import Body, profiled_job

UNKNOWN = 'strict decoding error: unknown field "spec.template.spec.containers[0].comand"'


def variant(vendor: str = "Google", **container: Any) -> Body:
    return {"vendor": vendor, "template": {"spec": {"containers": [{"name": "trainer"} | container]}}}


def read(world: World, *variants: Body) -> Job:
    """A job with these variants that has no place yet."""
    body = profiled_job()
    body["spec"]["placement"] = {"variants": list(variants)}
    world.cluster.put(PROFILED_JOBS, body)
    return world.read()


def check(world: World, job: Job) -> None:
    world.executor.carry_out(job, CheckVariants(), world.pools)


def refusing(world: World, *fields: str) -> list[Any]:
    """The cluster takes no container with these fields from now on. The images of the trainers that it judges."""
    create, judged = world.cluster.create, []

    def judging(resource: Resource, body: Mapping[str, Any], *, dry_run: bool = False, strict: bool = False) -> Body:
        for container in body["spec"]["template"]["spec"]["containers"]:
            judged.append(container.get("image"))
            for field in fields:
                if field in container:
                    raise Invalid(UNKNOWN.replace("comand", field))
        return create(resource, body, dry_run=dry_run, strict=strict)

    world.cluster.create = judging  # type: ignore[method-assign]
    return judged


def test_each_variant_is_asked_about_once_for_each_spec_and_named(world: World) -> None:
    judged = refusing(world, "comand")
    job = read(world, variant("AMD", image="rocm"), variant(comand=["python"]))
    checks = world.executor.checks
    assert not checks.variants_checked(job) and checks.refused_variants(job) == ()
    check(world, job)
    (refusal,) = checks.refused_variants(job)
    assert refusal.vendor == "Google"
    assert refusal.message.startswith("spec.placement.variants[1].template for Google")
    assert 'containers[0].comand"' in refusal.message
    assert "rocm" in judged
    assert checks.variants_checked(job) and not world.executor.needed(job, CheckVariants())
    world.clock += 100.0
    corrected = replace(job, generation=2)
    assert checks.refused_variants(corrected) == () and world.executor.needed(corrected, CheckVariants())


def test_a_mistake_of_the_template_itself_is_no_fault_of_a_variant(world: World) -> None:
    refusing(world, "image")
    job = read(world, variant())
    check(world, job)
    assert world.executor.checks.refused_variants(job) == ()
    assert world.executor.checks.variants_checked(job)


def test_a_variant_is_refused_where_the_template_itself_can_not_be_built_for_its_pools(world: World) -> None:
    """Such as one that asks for nodes of another vendor, which the variant takes back."""
    refusing(world, "comand")
    pool = next(name for name, pool in world.pools.items() if pool.accelerator.vendor.name == "NVIDIA")
    world.pools = {pool: replace(world.pools[pool], node_selector={"stack": "cuda"})}
    made = variant("NVIDIA", comand=["python"])
    made["template"]["spec"]["nodeSelector"] = {"stack": None}
    body = profiled_job()
    body["spec"]["workload"]["job"]["template"]["spec"]["nodeSelector"] = {"stack": "tpu"}
    body["spec"]["placement"] = {"variants": [made]}
    world.cluster.put(PROFILED_JOBS, body)
    job = world.read()
    check(world, job)
    (refusal,) = world.executor.checks.refused_variants(job)
    assert 'containers[0].comand"' in refusal.message
    assert world.executor.checks.variants_checked(job)


def test_the_variant_in_use_is_not_asked_about(world: World) -> None:
    refusing(world)
    job = read(world, variant())
    ref = replace(world.ref, vendor="Google")
    placed = changed(job, revision=ref)
    assert world.executor.checks.variants_checked(placed)
    assert not world.executor.checks.variants_checked(job)


def test_what_a_variant_can_not_be_built_with_is_named(world: World) -> None:
    job = read(world, variant("NVIDIA", resources={"limits": {"nvidia.com/gpu": "1"}}))
    check(world, job)
    (refusal,) = world.executor.checks.refused_variants(job)
    assert "asks for nvidia.com/gpu itself" in refusal.message


@pytest.mark.parametrize("checked", [False, True])
def test_a_move_by_a_variant_waits_until_it_was_checked(world: World, checked: bool) -> None:
    job = read(world, variant())
    planned = replace(migration(world, Phase.PLANNED), action=Action.MOVE)
    target = replace(planned.target, vendor="Google", workload_hash=job.variants[0].workload_hash)
    moving = changed(job, revision=world.ref, migration=replace(planned, target=target), variants_checked=checked)
    after = advance(moving, None, AUTO, world.clock, decision_text).state.migration
    assert after is not None and (after.phase is not Phase.PLANNED) is checked


@pytest.mark.parametrize("action", [Action.MOVE, Action.START])
def test_what_was_planned_by_a_variant_that_is_refused_is_given_up(world: World, action: Action) -> None:
    """Before anything is touched: its child would not be made, and the job would wait for it."""
    job = read(world, variant())
    planned = replace(migration(world, Phase.PLANNED), action=action)
    target = replace(planned.target, vendor="Google", workload_hash=job.variants[0].workload_hash)
    refused = (VariantRefusal("Google", "unknown field comand"),)
    moving = changed(
        job, revision=world.ref, migration=replace(planned, target=target), variants_checked=True,
        refused_variants=refused,
    )  # fmt: skip
    after = advance(moving, None, AUTO, world.clock, decision_text).state
    assert after.migration is None and after.revision == world.ref
    held = after.history[-1]
    assert (held.outcome, held.reason, held.message) == (Outcome.HELD, "InvalidVariant", "unknown field comand")
