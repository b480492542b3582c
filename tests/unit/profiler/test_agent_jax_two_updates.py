"""The parameters of JAX steps that update two networks one after the other, as of a GAN in one function. The second one
learns from the first one's new parameters, so that the first one's optimizer acts on both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

jax = pytest.importorskip("jax")
from rightpool_agent import jax_loops  # type: ignore[import-not-found]  # noqa: E402

jnp = jax.numpy
map_ = jax.tree_util.tree_map
CRITIC = {
    "w1": jnp.ones((4, 8)),
    "b1": jnp.ones(8),
    "w2": jnp.ones((8, 8)),
    "b2": jnp.ones(8),
    "head": jnp.ones((8, 1)),
    "end": jnp.ones(1),
}
GENERATOR = {"w": jnp.ones((2, 8)), "b": jnp.ones(8), "out": jnp.ones((8, 4)), "c": jnp.ones(4)}
COUNT = 4 * 8 + 8 + 8 * 8 + 8 + 8 + 1 + 2 * 8 + 8 + 8 * 4 + 4
BATCH = jnp.ones((16, 4)), jnp.ones((16, 2))
Update = Callable[[Any, Any, Any], tuple[Any, Any]]  # of parameters, gradients and the optimizer's state


def judged(critic: Any, x: Any) -> Any:
    hidden = jax.nn.leaky_relu(x @ critic["w1"] + critic["b1"])
    return jax.nn.leaky_relu(hidden @ critic["w2"] + critic["b2"]) @ critic["head"] + critic["end"]


def made_up(generator: Any, noise: Any) -> Any:
    return jax.nn.relu(noise @ generator["w"] + generator["b"]) @ generator["out"] + generator["c"]


def critic_loss(critic: Any, generator: Any, batch: Any) -> Any:
    real, noise = batch
    false = judged(critic, made_up(generator, noise))
    return jnp.mean(jax.nn.softplus(-judged(critic, real)) + jax.nn.softplus(false))


def generator_loss(generator: Any, critic: Any, batch: Any) -> Any:
    return jnp.mean(jax.nn.softplus(-judged(critic, made_up(generator, batch[1]))))


def sgd(net: Any, grads: Any, state: Any) -> tuple[Any, Any]:
    return map_(lambda p, g: p - 0.1 * g, net, grads), state


def momentum(net: Any, grads: Any, state: Any) -> tuple[Any, Any]:
    state = map_(lambda m, g: 0.9 * m + g, state, grads)
    return map_(lambda p, m: p - 0.1 * m, net, state), state


def decayed(net: Any, grads: Any, state: Any) -> tuple[Any, Any]:
    return momentum(net, map_(lambda g, p: g + 0.01 * p, grads, net), state)


def adam(net: Any, grads: Any, state: Any) -> tuple[Any, Any]:
    calls, mean, square = state
    calls = calls + 1
    mean = map_(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = map_(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)
    updates = map_(lambda m, s: m / (1 - 0.9**calls) / (jnp.sqrt(s / (1 - 0.99**calls)) + 1e-8), mean, square)
    return map_(lambda p, u: p - 0.1 * u, net, updates), (calls, mean, square)


def decayed_adam(net: Any, grads: Any, state: Any) -> tuple[Any, Any]:
    return adam(net, map_(lambda g, p: g + 0.01 * p, grads, net), state)


def clipped_adam(net: Any, grads: Any, state: Any) -> tuple[Any, Any]:
    norm = jnp.sqrt(sum(jnp.sum(one**2) for one in grads.values()))
    return adam(net, map_(lambda g: g / jnp.maximum(norm, 1.0), grads), state)


def jitted_adam(net: Any, grads: Any, state: Any) -> Any:
    return jax.jit(adam)(net, grads, state)


def adam_if_finite(net: Any, grads: Any, state: Any) -> Any:
    finite = jnp.all(jnp.asarray([jnp.all(jnp.isfinite(g)) for g in grads.values()]))
    return map_(lambda new, old: jnp.where(finite, new, old), adam(net, grads, state), (net, state))


def adam_under_condition(net: Any, grads: Any, state: Any) -> Any:
    return jax.lax.cond(
        grads["w" if "w" in grads else "w1"][0, 0] < 9, lambda: adam(net, grads, state), lambda: (net, state)
    )


def muon(net: Any, grads: Any, state: Any) -> tuple[Any, Any]:
    """Momentum goes through matrix products before it is taken from the parameters."""
    state = map_(lambda m, g: 0.9 * m + g, state, grads)
    return map_(lambda p, m: p - 0.1 * (m @ m.T @ m if m.ndim == 2 else m), net, state), state


def one(net: Any) -> Any:
    return map_(jnp.zeros_like, net)


def two(net: Any) -> Any:
    return jnp.int32(0), one(net), one(net)


def in_a_row(update: Update) -> Callable[..., Any]:
    def step(critic: Any, first: Any, generator: Any, second: Any, batch: Any) -> Any:
        critic, first = update(critic, jax.grad(critic_loss)(critic, generator, batch), first)
        generator, second = update(generator, jax.grad(generator_loss)(generator, critic, batch), second)
        return critic, first, generator, second

    return step


def optimizers_first(step: Callable[..., Any], batch: Any, *state: Any) -> Any:
    def ordered(first: Any, second: Any, critic: Any, generator: Any, batch: Any) -> Any:
        critic, first, generator, second = step(critic, first, generator, second, batch)
        return first, second, critic, generator

    critic, first, generator, second = state
    return jax.make_jaxpr(ordered)(first, second, critic, generator, batch)


def networks_first(step: Callable[..., Any], batch: Any, *state: Any) -> Any:
    return jax.make_jaxpr(jax.jit(step))(*state, batch)


def shared(step: Callable[..., Any], batch: Any, *state: Any) -> Any:
    """The optimizer's state is one tuple, of both networks."""

    def together(nets: Any, kept: Any, batch: Any) -> Any:
        critic, first, generator, second = step(nets[0], kept[0], nets[1], kept[1], batch)
        return (critic, generator), (first, second), critic_loss(critic, generator, batch)

    critic, first, generator, second = state
    return jax.make_jaxpr(together)((critic, generator), (first, second), batch)


@pytest.mark.parametrize("traced", [networks_first, optimizers_first, shared])
@pytest.mark.parametrize(
    ("update", "began"),
    [
        (sgd, lambda net: ()),
        (momentum, one),
        (decayed, one),
        (adam, two),
        (decayed_adam, two),
        (clipped_adam, two),
        (jitted_adam, two),
        (adam_if_finite, two),
        (adam_under_condition, two),
        (muon, one),
    ],
)
def test_both_networks_are_told_from_the_optimizers_state(
    traced: Callable[..., Any], update: Update, began: Callable[[Any], Any]
) -> None:
    closed = traced(in_a_row(update), BATCH, CRITIC, began(CRITIC), GENERATOR, began(GENERATOR))
    found = jax_loops.find(closed).parameters
    assert found is not None
    assert (found.count, found.bytes, found.dtype) == (COUNT, 4 * COUNT, "float32")


def unrolled(update: Update) -> Callable[..., Any]:
    """Two updates of the critic, then one of the generator."""

    def step(critic: Any, first: Any, generator: Any, second: Any, batch: Any) -> Any:
        for _ in range(2):
            critic, first = update(critic, jax.grad(critic_loss)(critic, generator, batch), first)
        generator, second = update(generator, jax.grad(generator_loss)(generator, critic, batch), second)
        return critic, first, generator, second

    return step


def in_a_loop(update: Update) -> Callable[..., Any]:
    """The critic's updates are a loop of their own, as in a Wasserstein GAN."""

    def step(critic: Any, first: Any, generator: Any, second: Any, batch: Any) -> Any:
        def again(_: Any, state: Any) -> Any:
            critic, first = state
            return update(critic, jax.grad(critic_loss)(critic, generator, batch), first)

        critic, first = jax.lax.fori_loop(0, 3, again, (critic, first))
        generator, second = update(generator, jax.grad(generator_loss)(generator, critic, batch), second)
        return critic, first, generator, second

    return step


def passed_on_before(update: Update) -> Callable[..., Any]:
    """What the generator learns from is not what comes out, but what that is made from."""

    def step(critic: Any, first: Any, generator: Any, second: Any, batch: Any) -> Any:
        critic, first = update(critic, jax.grad(critic_loss)(critic, generator, batch), first)
        generator, second = update(generator, jax.grad(generator_loss)(generator, critic, batch), second)
        return map_(lambda p: jnp.clip(p, -1.0, 1.0), critic), first, generator, second

    return step


@pytest.mark.parametrize("traced", [networks_first, optimizers_first, shared])
@pytest.mark.parametrize("made", [unrolled, in_a_loop, passed_on_before])
@pytest.mark.parametrize(
    ("update", "began"), [(sgd, lambda net: ()), (momentum, one), (adam, two), (decayed_adam, two)]
)
def test_never_too_many_or_too_few(
    made: Callable[..., Any], traced: Callable[..., Any], update: Update, began: Callable[[Any], Any]
) -> None:
    closed = traced(made(update), BATCH, CRITIC, began(CRITIC), GENERATOR, began(GENERATOR))
    found = jax_loops.find(closed).parameters
    assert found is None or found.count == COUNT


@pytest.mark.parametrize(("update", "began"), [(sgd, lambda net: ()), (momentum, one), (adam, two)])
def test_not_the_generator_alone_where_a_small_critic_is_trained_in_a_loop(update: Update, began: Any) -> None:
    generator = GENERATOR | {"w": jnp.ones((2, 200)), "b": jnp.ones(200), "out": jnp.ones((200, 4))}
    closed = networks_first(in_a_loop(update), BATCH, CRITIC, began(CRITIC), generator, began(generator))
    assert jax_loops.find(closed).parameters is None
