"""How reports of processes become the pod's metrics."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool import contract
from rightpool_profiler import exposition
from rightpool_profiler.report import BUCKETS, Chip, Malformed, Model, Report
from rightpool_profiler.state import MAX_PROCESSES, SILENT_AFTER, State

EMPTY = (0,) * (len(BUCKETS) + 1)


def report(pid: int = 1, rank: int = 0, steps: int = 1, **more: object) -> Report:
    values: dict[str, object] = {
        "pid": pid,
        "start": 100 + pid,
        "rank": rank,
        "world": 8,
        "at": float(steps),
        "framework": "jax",
        "steps": steps,
        "seconds": 0.1 * max(0, steps - 1),
        "counts": (max(0, steps - 1), *EMPTY[1:]),
        "cpu": 0.5 * steps,
        "samples": 8 * steps,
        "platform": "cpu",
    }
    return Report(**{**values, **more})  # type: ignore[arg-type]


def state(chips: int = 1) -> State:
    return State(10.0, chips)


def metrics(made: State, now: float) -> dict[str, float]:
    page = exposition.render(*made.exposition(now))
    rows = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in rows}


def test_the_model_is_what_the_leader_says_and_the_batch_that_of_all() -> None:
    made = state()
    models = {0: Model("bf16", "fp32", 1000, 4000, 9000, (("data", 2),)), 1: Model("fp16")}
    for moment in range(1, 6):
        for rank in (1, 0):
            rows = 8 * moment - (4 if moment == 5 else 0)  # the last batch is a smaller one
            one = report(pid=10 + rank, rank=rank, steps=moment, samples=rows, model=models[rank])
            made.apply(one, float(moment), 0.0)
    found = metrics(made, 5.0)
    assert found['rightpool_model_info{data="2",parameter_dtype="fp32",precision="bf16"}'] == 1
    assert found[contract.MODEL_PARAMETERS] == 1000
    assert found[contract.MODEL_PARAMETER_BYTES] == 4000
    assert found[contract.MODEL_BYTES] == 9000
    assert found[contract.STEP_SAMPLES] == 16


def test_a_model_of_which_nothing_is_said_is_absent() -> None:
    made = state()
    made.apply(report(samples=None), 1.0, 0.0)
    assert not any(name.startswith(("rightpool_model", "rightpool_step_samples")) for name in metrics(made, 1.0))


def test_busy_time_by_utilization_is_derived() -> None:
    made = state()
    made.apply(report(platform="cuda", chips=(Chip("a", {"utilization": 0.9}),)), 1.0, 0.0)
    found = metrics(made, 1.0)
    assert found['rightpool_chip_busy_ratio{chip="a"}'] == 0.9
    assert found['rightpool_field_quality{field="rightpool_chip_busy_ratio",quality="derived"}'] == 1
    better = state()
    better.apply(report(platform="cuda", chips=(Chip("a", {"utilization": 0.9, "busy": 0.3}),)), 1.0, 0.0)
    assert metrics(better, 1.0)['rightpool_chip_busy_ratio{chip="a"}'] == 0.3


def test_a_first_step_that_compiles_is_no_count() -> None:
    made = state()
    made.apply(report(steps=0, samples=None, platform="cuda", chips=(Chip("a", {"busy": 0.0}),)), 1.0, 0.0)
    found = metrics(made, 1.0)
    assert not any(name.startswith((contract.STEPS, contract.STEP_SECONDS, contract.SAMPLES)) for name in found)
    assert made.processes(1.0)[0]["steps"] is None


def working(pid: int, moment: float, busy: dict[str, float]) -> Report:
    chips = tuple(Chip(uuid, {"busy": ratio}) for uuid, ratio in busy.items())
    return report(pid=pid, steps=int(moment), platform="cuda", chips=chips)


def test_a_chip_that_no_process_uses_is_counted_as_such() -> None:
    made = state(2)
    for moment in (1, 30, 70):
        made.apply(working(1, moment, {"a": 0.9, "b": 0.0}), float(moment), 0.0)
        assert metrics(made, moment)[contract.CHIPS_UNUSED] == (1 if moment == 70 else 0)
    made.apply(working(1, 80, {"a": 0.9, "b": 0.4}), 80.0, 0.0)
    made.apply(working(1, 200, {"a": 0.9, "b": 0.0}), 200.0, 0.0)
    assert metrics(made, 200.0)[contract.CHIPS_UNUSED] == 0, "it was used once, and may be again"


@pytest.mark.parametrize("busy", [{"a": 0.9}, {"a": 0.0, "b": 0.0}])
def test_unused_chips_are_not_known_of_one_chip_or_where_none_works(busy: dict[str, float]) -> None:
    made = state(len(busy))
    for moment in (1, 100):
        made.apply(working(1, moment, busy), float(moment), 0.0)
    assert contract.CHIPS_UNUSED not in metrics(made, 100.0)


def test_a_program_whose_steps_cannot_be_counted_trains_all_the_same() -> None:
    made = state()
    made.apply(report(steps=0, samples=None), 1.0, 0.0)
    assert not made.stepping(1.0)
    made.apply(report(pid=2, steps=0, samples=None, opaque=True), 1.0, 0.0)
    assert made.stepping(1.0), "it can be asked to save"
    assert not any(name.startswith(contract.STEPS) for name in metrics(made, 1.0))


def test_no_values_before_the_first_report() -> None:
    assert set(metrics(state(), 0.0)) == {
        'rightpool_profiler_datagrams_total{result="taken"}',
        'rightpool_profiler_datagrams_total{result="refused"}',
    }


def test_programs_that_are_no_ranks_each_count() -> None:
    """One after the other, before the first is known to be gone, or side by side."""
    made = state()
    for moment in range(1, 61):
        made.apply(report(pid=10, steps=moment, world=1), 0.1 * moment, 0.0)
    for moment in range(1, 61):
        made.apply(report(pid=20, steps=moment, world=1), 6 + 0.1 * moment, 0.0)
    found = metrics(made, 12.0)
    assert (found[contract.STEPS], found[contract.SAMPLES]) == (120, 960)


def test_samples_are_not_known_where_one_process_does_not_know_its_own() -> None:
    made = state()
    made.apply(report(pid=10, steps=5, world=1), 1.0, 0.0)
    made.apply(report(pid=20, steps=5, world=1, samples=None), 1.0, 0.0)
    found = metrics(made, 1.0)
    assert found[contract.STEPS] == 10
    assert contract.SAMPLES not in found


MISSING = f'{contract.FIELD_QUALITY}{{field="{contract.SAMPLES}",quality="missing"}}'


@pytest.mark.parametrize("unknown", [{"steps": 5}, {"steps": 0, "seconds": 0.0, "counts": EMPTY, "opaque": True}])
def test_a_process_that_steps_and_counts_no_samples_leaves_none_of_the_pod(unknown: dict[str, object]) -> None:
    """Neither their number nor those of a step: both would be of the others alone."""
    made = state()
    for moment in (1, 2):
        made.apply(report(pid=10, steps=5 * moment, world=1), float(moment), 0.0)
        made.apply(report(pid=20, world=1, samples=None, **unknown), float(moment), 0.0)
    found = metrics(made, 2.0)
    assert found[MISSING] == 1
    assert not {contract.SAMPLES, contract.STEP_SAMPLES} & found.keys()


def test_samples_that_are_known_later_count_from_the_start() -> None:
    made = state()
    made.apply(report(steps=5, samples=None), 1.0, 0.0)
    made.apply(report(steps=9, samples=72), 2.0, 0.0)
    found = metrics(made, 2.0)
    assert found[contract.SAMPLES] == 72 and MISSING not in found


def test_samples_that_were_unknown_for_a_while_count_once() -> None:
    made = state()
    for steps, samples in ((5, 40), (7, None), (9, 72)):
        made.apply(report(steps=steps, samples=samples), float(steps), 0.0)
    assert metrics(made, 9.0)[contract.SAMPLES] == 72
    with pytest.raises(Malformed):
        made.apply(report(steps=10, samples=71), 10.0, 0.0)


def test_samples_of_a_process_that_has_ended_and_knew_none_stay_unknown() -> None:
    made = state()
    made.apply(report(pid=1, steps=5, samples=None), 0.0, 0.0)
    for number in range(MAX_PROCESSES + 1):
        made.apply(report(pid=2 + number), SILENT_AFTER + 1 + number, 0.0)
    assert contract.SAMPLES not in metrics(made, SILENT_AFTER + 1 + MAX_PROCESSES)


def test_a_program_whose_steps_can_be_counted_no_longer_is_heard_on() -> None:
    """A jitted loop has made so many steps a call, and then so many: the agent sends no counters from then on."""
    made = state()
    made.apply(report(steps=5), 1.0, 0.0)
    made.apply(report(steps=0, seconds=0.0, counts=EMPTY, samples=None, opaque=True, at=9.0), 2.0, 0.0)
    found = metrics(made, 2.0)
    assert found[contract.STEPS] == 5 and found[MISSING] == 1
    assert made.stepping(2.0 + SILENT_AFTER)
    made.apply(report(steps=8, samples=64, at=10.0), 3.0, 0.0)
    found = metrics(made, 3.0)
    assert (found[contract.STEPS], found[contract.SAMPLES]) == (8, 64)


def test_a_process_whose_steps_are_not_seen_has_chips_and_no_steps() -> None:
    made = state()
    chip = Chip(uuid="GPU-1", ratios={"busy": 0.5})
    made.apply(report(steps=0, samples=None, platform="gpu", chips=(chip,), world=1), 1.0, 0.0)
    found = metrics(made, 1.0)
    assert contract.STEPS not in found and found[f'{contract.CHIP_BUSY}{{chip="GPU-1"}}'] == 0.5


def test_steps_of_one_rank_and_samples_of_all() -> None:
    made = state()
    for moment in range(1, 6):
        for rank in (1, 0):  # rank 1 happens to report first
            made.apply(report(pid=10 + rank, rank=rank, steps=moment), float(moment), 0.0)
    found = metrics(made, 5.0)
    assert found[contract.SAMPLES] == 2 * 5 * 8
    assert found[contract.STEPS] == 5, "the first from rank 1, the other four from rank 0"


@pytest.mark.parametrize("first", [5, 7, 9])
def test_steps_are_the_programs_whichever_rank_is_heard_first(first: int) -> None:
    """Ranks step together, and their reports lie apart."""
    made = state()
    made.apply(report(pid=11, rank=1, steps=7), 0.0, 0.0)
    for moment, steps in enumerate((first, 12, 30, 40)):
        made.apply(report(pid=10, rank=0, steps=steps), 0.5 + moment, 0.0)
        made.apply(report(pid=11, rank=1, steps=max(7, steps - 2)), 1.0 + moment, 0.0)
    found = metrics(made, 4.0)
    assert found[contract.STEPS] == 40
    assert 40 - 12 <= found[f"{contract.STEP_SECONDS}_count"] < 40


def test_a_rank_that_goes_on_alone_counts_on() -> None:
    made = state()
    for moment in range(1, 101):
        for rank in (0, 1):
            made.apply(report(pid=10 + rank, rank=rank, steps=moment), float(moment), 0.0)
    for moment in range(101, 151):
        made.apply(report(pid=11, rank=1, steps=moment), float(moment), 0.0)
    assert metrics(made, 150.0)[contract.STEPS] == 150


def test_a_program_that_is_started_again_beside_the_last_rank_of_the_old_one_counts_anew() -> None:
    made = state()
    made.apply(report(pid=11, rank=1, steps=100), 0.0, 0.0)
    for moment in (1, 2, 3):
        made.apply(report(pid=20, rank=0, steps=moment, start=90_000), float(moment), 0.0)
    assert metrics(made, 3.0)[contract.STEPS] == 103


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=60))
def test_no_order_of_reports_makes_more_steps_than_the_program(heard: list[tuple[int, int]]) -> None:
    """Each rank that is heard is up to five steps ahead of where it was; none can be five ahead of another."""
    made, done = state(), dict.fromkeys(range(4), 0)
    for moment, (rank, ahead) in enumerate(heard):
        done[rank] = max(done[rank], min(moment + ahead, min(done.values()) + 5))
        made.apply(report(pid=10 + rank, rank=rank, steps=done[rank]), 0.1 * moment, 0.0)
        assert metrics(made, 0.1 * moment).get(contract.STEPS, 0) <= max(done.values())
    for rank in done:
        made.apply(report(pid=10 + rank, rank=rank, steps=100), 0.1 * len(heard), 0.0)
    assert metrics(made, 0.1 * len(heard))[contract.STEPS] == 100


def test_counters_outlive_processes() -> None:
    made = state()
    made.apply(report(pid=1, steps=10), 0.0, 0.0)
    later = SILENT_AFTER + 1
    made.apply(report(pid=2, steps=3), later, 0.0)
    assert metrics(made, later)[contract.STEPS] == 13
    assert metrics(made, later)[contract.SAMPLES] == 104


def test_a_report_is_valid_until_the_program_is_considered_gone() -> None:
    """A program may take its time to end, and a machine to run the agent; an interval may be shorter than that."""
    made = State(1.0, 1)
    for step in (1, 2, 3):
        made.apply(report(steps=step, input_seconds=0.05 * step, memory=7e6), 1.1 * step, 0.0)
    share = f'{contract.STEP_SHARE}{{part="{contract.PART_INPUT}"}}'
    busy = f'{contract.CHIP_BUSY}{{chip="cpu"}}'
    last = metrics(made, 3.3)
    assert last[share] == pytest.approx(0.5) and busy in last
    assert metrics(made, 3.3 + SILENT_AFTER) == last
    gone = metrics(made, 3.4 + SILENT_AFTER)
    assert share not in gone and busy not in gone
    assert gone[contract.STEPS] == 3


def test_a_program_without_batches_has_no_samples() -> None:
    made = state()
    made.apply(report(samples=None), 0.0, 0.0)
    assert contract.SAMPLES not in metrics(made, 0.0)


def test_steps_go_on_where_samples_are_known_no_longer() -> None:
    made = state()
    made.apply(report(steps=5, samples=40), 0.0, 0.0)
    made.apply(report(steps=9, samples=None), 1.0, 0.0)
    assert metrics(made, 1.0)[contract.STEPS] == 9
    assert contract.SAMPLES not in metrics(made, 1.0)


@pytest.mark.parametrize("change", [{"steps": 4}, {"seconds": 0.1}, {"samples": 7}, {"counts": EMPTY}])
def test_counters_that_run_backwards_are_refused(change: dict[str, object]) -> None:
    made = state()
    made.apply(report(steps=5), 0.0, 0.0)
    with pytest.raises(Malformed):
        made.apply(report(**{"steps": 6, **change}), 1.0, 0.0)  # type: ignore[arg-type]
    assert metrics(made, 1.0)[contract.STEPS] == 5


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.floats(0, 30)), max_size=60))
def test_the_pods_counters_never_decrease(events: list[tuple[int, int, float]]) -> None:
    made, now, before = (
        state(),
        0.0,
        {contract.STEPS: 0.0, contract.SAMPLES: 0.0, f"{contract.STEP_SECONDS}_count": 0.0},
    )
    for pid, steps, wait in events:
        now += wait
        try:
            made.apply(report(pid=pid, rank=pid, steps=steps), now, 0.0)
        except Malformed:
            pass
        found = metrics(made, now)
        for name, value in before.items():
            assert found.get(name, 0.0) >= value
            before[name] = found.get(name, 0.0)


def test_too_many_processes_are_refused_while_all_live_and_forgotten_when_silent() -> None:
    made = state()
    for pid in range(MAX_PROCESSES):
        made.apply(report(pid=pid), 0.0, 0.0)
    with pytest.raises(Malformed, match="processes"):
        made.apply(report(pid=9999), 1.0, 0.0)
    made.apply(report(pid=9999), SILENT_AFTER + 2, 0.0)
    assert len(made.processes(0.0)) == MAX_PROCESSES


def test_cpu_time_is_the_busy_time_without_a_chip() -> None:
    made = state(chips=2)
    for moment in (1.0, 2.0):
        for pid in (1, 2):
            made.apply(
                report(pid=pid, rank=pid, at=moment, cpu=0.8 * moment, steps=int(moment), memory=1e9, memory_limit=4e9),
                moment,
                0.0,
            )
    found = metrics(made, 2.0)
    assert found[f'{contract.CHIP_BUSY}{{chip="cpu"}}'] == pytest.approx(0.4, abs=0.3)
    assert found[f'{contract.CHIP_MEMORY_USED}{{chip="cpu"}}'] == 2e9
    assert found[f'{contract.CHIP_MEMORY_TOTAL}{{chip="cpu"}}'] == 4e9
    assert found[f'{contract.FIELD_QUALITY}{{field="{contract.CHIP_BUSY}",quality="derived"}}'] == 1
    assert not [name for name in metrics(made, 2.0 + SILENT_AFTER + 11) if "chip" in name and "quality" not in name]


def test_cpu_time_is_not_the_busy_time_of_a_tpu() -> None:
    made = state()
    for moment in (1.0, 2.0):
        made.apply(report(at=moment, platform="tpu", steps=int(moment), memory=1e9), moment, 0.0)
    assert not [name for name in metrics(made, 2.0) if "chip" in name]


def test_chips_are_identified_by_uuid_and_averaged_over_the_interval() -> None:
    made = state()
    for moment, busy, used in ((1.0, 0.2, 5.0), (2.0, 0.6, 9.0), (3.0, 0.4, 7.0)):
        chip = Chip("GPU-a", {"busy": busy}, memory_used=used, memory_total=80.0, throttle={"power_cap": moment > 2.5})
        for pid in (1, 2):
            made.apply(
                report(pid=pid, rank=pid, steps=int(moment), at=moment, platform="cuda", chips=(chip,)), moment, 0.0
            )
    found = metrics(made, 3.0)
    assert found[f'{contract.CHIP_BUSY}{{chip="GPU-a"}}'] == pytest.approx(0.4)
    assert found[f'{contract.CHIP_MEMORY_USED}{{chip="GPU-a"}}'] == 9.0, "the peak"
    assert found[f'{contract.CHIP_THROTTLE}{{chip="GPU-a",reason="power_cap"}}'] == pytest.approx(1 / 3)
    assert found[f'{contract.SOURCE_UP}{{source="agent-nvml"}}'] == 1
    assert contract.CHIP_COMPUTE_ACTIVE not in " ".join(found), "absent, not zero"


def test_link_bytes_continue_when_the_process_is_replaced() -> None:
    made = state()
    for pid, moved in ((1, 100.0), (1, 300.0), (2, 50.0)):
        made.apply(
            report(pid=pid, rank=pid, steps=int(moved), chips=(Chip("GPU-a", links={("pcie", "rx"): moved}),)), 1.0, 0.0
        )
    assert metrics(made, 1.0)[f'{contract.LINK_BYTES}{{chip="GPU-a",direction="rx",link="pcie"}}'] == 350.0


def test_a_checkpoint_from_the_future_is_not_believed() -> None:
    made = state()
    made.apply(report(saved=5000.0), 0.0, 1000.0)
    assert made.saved is None
    made.apply(report(steps=2, saved=990.0, save_seconds=2.0), 1.0, 1000.0)
    made.apply(report(steps=3, saved=900.0), 2.0, 1000.0)
    assert made.saved == 990.0
    assert metrics(made, 2.0)[contract.CHECKPOINT_SECONDS] == 2.0


def test_the_answer_to_a_request_is_the_lowest_ranks() -> None:
    made = state()
    for rank, answer in ((1, "signalled"), (0, "no handler installed for SIGUSR1")):
        made.apply(dataclasses.replace(report(pid=rank, rank=rank), command=("d-7", answer)), 0.0, 0.0)
    assert made.command("d-7", 0.0) == "no handler installed for SIGUSR1"
    assert made.command("d-8", 0.0) is None
