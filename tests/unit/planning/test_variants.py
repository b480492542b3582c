"""Variants of the pod template for another vendor's chips: where a job may be by them, and what an edit of one does."""

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.placement import Placement
from rightpool.api.premise import Premise, PremiseKind
from rightpool.api.revision import Revision
from rightpool.api.traits import ModelTraits
from rightpool.hardware.node_needs import NodeNeeds, NodeShape
from rightpool.hardware.vendors.amd import AMD
from rightpool.planning.jobs.job import Job, VendorProgram
from rightpool.planning.jobs.revision_state import VariantRefusal
from rightpool.planning.moves.beginning import with_decision
from rightpool.planning.moves.commands import CheckVariants, commands
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.reporting.candidate_texts import verdict_text
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import FOUR, NOW, POOLS, changed, find, fresh, judged, reason, running, spec
from tests.unit.prediction.fixtures import A100, A100_CHIP, TPU

EIGHT = Placement("a100", 8, 1)
SLICE = Placement("tpu", 8, 2)
FOR_TPU = VendorProgram("Google", "t")
MI = replace(A100, name="mi300", accelerator=replace(A100_CHIP, key="MI300X", vendor=AMD))
ALL = {**POOLS, "mi300": MI}


def on_gpu(*variants: VendorProgram, **fields: Any) -> Job:
    """A job that runs by its template as it is."""
    return running(EIGHT, 1000.0, variants=variants, **fields)


def on_tpu(*variants: VendorProgram, hash: str = "t", **fields: Any) -> Job:
    """A job of a template for NVIDIA that runs by a variant for Google."""
    job = running(SLICE, 1000.0, variants=variants, **fields)
    assert job.state.revision is not None
    ref = replace(job.state.revision, workload_hash=hash, vendor="Google", template_vendor="NVIDIA")
    return changed(job, revision=ref)


def begun(job: Job, pools: dict[str, Any]) -> Revision:
    """The Revision that the job's decision makes."""
    decided = with_decision(job, judged(job, pools), NOW, decision_text).state
    found = decided.revision if decided.migration is None else decided.migration.target
    assert found is not None
    return found


def test_a_variant_lets_the_job_onto_the_chips_of_its_vendor() -> None:
    without = judged(on_gpu())
    assert reason(without, "tpu") is RejectionReason.VENDOR_NOT_DECLARED
    assert "tpu has Google chips, and the template is for NVIDIA" in verdict_text(find(without, "tpu"))
    assert reason(judged(on_gpu(FOR_TPU)), "tpu") not in (
        RejectionReason.VENDOR_NOT_DECLARED,
        RejectionReason.NOT_PREDICTABLE,
    )
    assert reason(judged(on_gpu(VendorProgram("AWS", "w"))), "tpu") is RejectionReason.VENDOR_NOT_DECLARED


def test_a_refused_variant_rules_its_chips_out_with_the_api_servers_words() -> None:
    refused = (VariantRefusal("Google", "unknown field comand"),)
    assessment = judged(on_gpu(FOR_TPU, refused_variants=refused))
    assert reason(assessment, "tpu") is RejectionReason.VARIANT_REFUSED
    assert "unknown field comand" in verdict_text(find(assessment, "tpu"))
    assert reason(judged(fresh(variants=(FOR_TPU,), refused_variants=refused)), "tpu") is (
        RejectionReason.VARIANT_REFUSED
    )
    elsewhere = judged(on_tpu(FOR_TPU, refused_variants=refused))
    assert elsewhere.current is not None and elsewhere.current.rejection is None, "what runs is not ended for it"


def test_the_way_back_to_the_templates_own_chips_stays_open() -> None:
    assessment = judged(on_tpu(FOR_TPU), ALL)
    assert reason(assessment, "a100") is not RejectionReason.VENDOR_NOT_DECLARED
    assert reason(assessment, "mi300") is RejectionReason.VENDOR_NOT_DECLARED
    assert "the template is for NVIDIA" in verdict_text(find(assessment, "mi300"))


@pytest.mark.parametrize("variant", [FOR_TPU, VendorProgram("AMD", "m")], ids=lambda variant: variant.vendor)
def test_before_the_first_start_the_template_is_for_the_vendor_without_a_variant(variant: VendorProgram) -> None:
    pools = {"tpu": TPU, "mi300": MI}
    without = judged(fresh(), pools)
    assert {reason(without, name) for name in pools} == {RejectionReason.VENDOR_NOT_DECLARED}
    assessment = judged(fresh(variants=(variant,)), pools)
    assert all(reason(assessment, name) in (None, RejectionReason.NOT_BETTER) for name in pools)


def test_a_revision_says_what_it_is_built_from() -> None:
    gpu = begun(fresh(variants=(FOR_TPU,)), {"a100": A100})
    assert (gpu.workload_hash, gpu.vendor, gpu.template_vendor) == ("h", "NVIDIA", None)
    tpu = begun(fresh(variants=(FOR_TPU,)), {"tpu": TPU})
    assert (tpu.workload_hash, tpu.vendor, tpu.template_vendor) == ("t", "Google", "NVIDIA")
    back = begun(on_tpu(FOR_TPU, made=spec(placement={"pools": {"deny": ["tpu"]}})), ALL)
    assert (back.workload_hash, back.vendor, back.template_vendor) == ("h", "NVIDIA", None)


def test_no_job_is_started_by_a_variant_before_it_was_checked() -> None:
    job = fresh(variants=(FOR_TPU,), variants_checked=False)
    assert with_decision(job, judged(job, {"tpu": TPU}), NOW, decision_text) is job
    assert begun(job, {"a100": A100}).vendor == "NVIDIA"


def test_an_edit_of_the_variant_in_use_is_an_update_and_of_another_nothing() -> None:
    edited = FOR_TPU._replace(workload_hash="new")
    update = judged(on_tpu(edited))
    assert update.decision.action is Action.UPDATE and update.decision.target == SLICE
    assert begun(on_tpu(edited), dict(POOLS)).workload_hash == "new"
    assert judged(on_gpu(edited)).decision.action is not Action.UPDATE
    assert judged(replace(on_tpu(FOR_TPU), workload_hash="new")).decision.action is not Action.UPDATE


def test_a_variant_that_is_taken_away_takes_the_job_back() -> None:
    update = judged(on_tpu())
    assert update.decision.action is Action.UPDATE
    assert update.decision.target is not None and update.decision.target.pool != "tpu"
    assert begun(on_tpu(), dict(POOLS)).workload_hash == "h"


def test_each_vendors_pools_are_judged_by_the_node_selector_of_its_template() -> None:
    labelled = {
        "a100": replace(A100, shapes={NodeShape(frozenset({("disk", "ssd")})): 8}, growable=0),
        "tpu": replace(TPU, shapes={NodeShape(frozenset({("disk", "tape")})): 16}, growable=0),
    }
    selecting = {
        "workload": {
            "job": {
                "chipsPerReplica": 8,
                "replicas": 1,
                "template": {"spec": {"containers": [{"name": "t"}], "nodeSelector": {"disk": "ssd"}}},
            }
        }
    }
    made = spec(**selecting)
    on_tape = FOR_TPU._replace(needs=NodeNeeds((("disk", "tape"),)))
    assert find(judged(fresh(made=made, variants=(on_tape,)), labelled), "tpu").rejection is None
    same = FOR_TPU._replace(needs=NodeNeeds((("disk", "ssd"),)))
    assert reason(judged(fresh(made=made, variants=(same,)), labelled), "tpu") is RejectionReason.NODE_SELECTOR


def test_the_precision_of_the_measured_program_is_not_that_of_another() -> None:
    """The TPU has no tf32. What a variant computes in is not known; the same template computes in it there, too."""

    def there(variant: VendorProgram) -> Candidate:
        job = on_gpu(variant)
        assert job.observed.profile is not None
        measured = replace(job.observed.profile, traits=ModelTraits(precision="tf32"))
        return find(judged(changed(job, profile=measured)), "tpu", 8)

    same, another = there(FOR_TPU._replace(workload_hash="h")), there(FOR_TPU)
    assert same.rejection is not None and same.rejection.reason is RejectionReason.PRECISION
    assert another.throughput is not None and Premise(PremiseKind.OTHER_PROGRAM) in another.throughput.basis
    assert another.rejection is None or another.rejection.reason is not RejectionReason.PRECISION


def test_variants_are_checked_with_the_first_cycle_and_while_the_job_runs() -> None:
    assert CheckVariants() in commands(fresh(variants=(FOR_TPU,), variants_checked=False))
    assert CheckVariants() in commands(on_gpu(FOR_TPU, variants_checked=False))
    assert CheckVariants() not in commands(on_gpu(FOR_TPU)), "it would be looked at in every cycle"
    assert CheckVariants() not in commands(fresh())
    assert CheckVariants() not in commands(running(FOUR))
