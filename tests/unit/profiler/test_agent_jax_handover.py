"""Functions that train the same parameters count together; what is merely given parameters does not."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

jax = pytest.importorskip("jax")
from rightpool_agent import jax_handover  # type: ignore[import-not-found]  # noqa: E402
from rightpool_agent.steps import StepLog, Track  # type: ignore[import-not-found]  # noqa: E402

jnp = jax.numpy
STATE = 400.0  # bytes of what `arrays` makes


@pytest.fixture(autouse=True)
def nothing_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_handover, "_newest", None)


def arrays() -> dict[str, Any]:
    """Parameters, as a new object each time."""
    return {"w": jnp.ones((10, 8)), "b": jnp.ones(20)}


def track(*, loops: bool = False, parameters: Any = 100, **traits: Any) -> Track:
    made = Track(STATE, True)
    made.probes, made.state, made.loops, made.recurs = jax_handover.PROBES, STATE, loops, loops
    made.parameters = None if parameters is None else SimpleNamespace(count=parameters, kinds=Counter())
    made.products = {"float32": 1.0}
    for name, value in traits.items():
        setattr(made, name, value)
    return made


def called(one: Track, state: Any, *more: Any) -> Any:
    """What it returns: state in the same shapes."""
    output = arrays()
    jax_handover.look(one, (state, *more), {}, output)
    return output


def together(one: Track, other: Track) -> bool:
    return one.joins is other or other.joins is one


@pytest.mark.parametrize("loop_first", [True, False])
@pytest.mark.parametrize("calls", [1, 9])
def test_a_loop_of_steps_and_single_ones_are_one_training(loop_first: bool, calls: int) -> None:
    """Also where the loop was called more often than others are looked at."""
    loop, step = track(loops=True), track()
    first, second = (loop, step) if loop_first else (step, loop)
    state = arrays()
    for _ in range(calls if loop_first else 1):
        state = called(first, state)
    called(second, state)
    assert together(loop, step)


def test_a_loop_that_comes_after_many_steps_is_a_part_of_their_training() -> None:
    """They are no more looked at by then, but for the call after it."""
    loop, step = track(loops=True), track()
    state = arrays()
    for _ in range(9):
        state = called(step, state) if step.probes else arrays()
    state = called(loop, state)
    assert not together(loop, step)
    jax_handover.again([loop, step])
    called(step, state)
    assert together(loop, step) and step.probes == 0


def test_where_the_parameters_are_not_told_a_step_shows_by_getting_its_own_back() -> None:
    loop, step = track(loops=True), track(parameters=None)
    state = called(step, called(loop, arrays()))
    assert not together(loop, step), "it may return gradients"
    called(step, state)
    assert together(loop, step)


@pytest.mark.parametrize(
    "traits",
    [
        {"trains": False},
        {"keeps": True},
        {"parameters": 50},
        {"parameters": None, "products": {}},  # averages them
        {"parameters": None, "state": 10 * STATE},
        {"doubtful": True},
    ],
)
def test_what_else_is_given_parameters_counts_apart(traits: dict[str, Any]) -> None:
    loop, other = track(loops=True), track(**traits)
    state, own = arrays(), arrays()
    for _ in range(3):
        state = called(loop, state)
        own = called(other, own, state)
    assert not together(loop, other)


@pytest.mark.parametrize(
    ("loop_traits", "traits"),
    [
        ({"state": 4.0 * STATE}, {"parameters": None}),  # a part of them
        ({"products": {}}, {"products": {}, "parameters": None}),  # neither computes: one of them averages
    ],
)
def test_who_gets_its_own_back_beside_a_loop_is_not_always_of_its_training(
    loop_traits: dict[str, Any], traits: dict[str, Any]
) -> None:
    loop, other = track(loops=True, **loop_traits), track(**traits)
    state, own = arrays(), arrays()
    for _ in range(3):
        state = called(loop, state)
        own = called(other, own, state)
    assert other.recurs and not together(loop, other)


def test_a_third_function_joins_those_that_are_one_already() -> None:
    """The heaviest comes last, and is given what the lightest has returned."""
    first, light, heavy = track(loops=True, weight=2.0), track(weight=1.0), track(weight=3.0)
    called(heavy, called(light, called(first, arrays())))
    assert (light.joins, first.joins, heavy.joins) == (first, heavy, None)


def test_a_generator_that_is_given_its_critic_counts_apart() -> None:
    """The critic's arrays come in, but not out again."""
    critic, generator = track(loops=True), track()
    for _ in range(3):
        state = called(critic, arrays())
        jax_handover.look(generator, ({"g": jnp.ones((5, 20))}, state), {}, {"g": jnp.ones((5, 20))})
    assert not together(critic, generator)


def test_nothing_is_said_of_steps_with_a_loop_of_unknown_length() -> None:
    loop, step = track(loops=True, opaque=True), track()
    called(step, called(loop, arrays()))
    assert (loop.joins or step.joins).opaque


def test_three_functions_of_one_training_and_nothing_counts_twice() -> None:
    """Whenever the agent looks: each of them was the step for a while."""
    log, at, state = StepLog(), 0.0, arrays()
    first, step, second = track(loops=True), track(), track(loops=True, weight=2 * STATE)
    for one, steps in [(first, 10), (step, 1), (step, 1), (second, 5), (first, 10), (step, 1)]:
        at += 0.1 * steps
        log.add(one, at, 4 * steps, steps)
        log.drain()
        state = called(one, state)
    log.drain(final=True)
    assert (log.steps, log.samples) == (28, 112)
    assert log.dominant is second and log.has_samples


def test_averages_of_parameters_are_not_the_step_however_long_they_take() -> None:
    log, loop, average = StepLog(), track(loops=True), track(products={}, recurs=True)
    for call in range(4):
        log.add(average, 2.0 * call, 0)
        log.add(loop, 2.0 * call + 0.5, 40, 10)
    log.drain(final=True)
    assert (log.dominant, log.steps) == (loop, 40)


def test_averages_that_the_agent_has_seen_alone_give_way_to_the_step() -> None:
    log, loop, average = StepLog(), track(loops=True), track(products={}, recurs=True, weight=2 * STATE)
    for call in range(4):
        log.add(average, 2.0 * call, 0)
    log.drain()
    assert log.dominant is average
    for call in range(4, 8):
        log.add(average, 2.0 * call, 0)
        log.add(loop, 2.0 * call + 0.5, 40, 10)
    log.drain(final=True)
    assert (log.dominant, log.steps) == (loop, 40)


@pytest.mark.parametrize(("more", "unclear"), [(0, False), (1, True)])
def test_parameters_are_clear_only_where_all_of_them_are_given_again(more: int, unclear: bool) -> None:
    """An error of each row that is made from its reward looks like one of them, and is handed on to nobody."""
    step, state = track(), arrays()
    step.parameters.kinds.update({((10, 8), "float32"): 1, ((20,), "float32"): 1 + more})
    for _ in range(3):
        output = {**arrays(), "errors": jnp.ones(20)}
        jax_handover.look(step, (state, jnp.ones(20)), {}, output)
        state = {"w": output["w"], "b": output["b"]}
    assert step.recurs and step.unclear is unclear
