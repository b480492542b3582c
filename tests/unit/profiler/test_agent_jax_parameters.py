"""The parameters of JAX steps as people write them, and nothing where they can't be told from other state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

jax = pytest.importorskip("jax")
from jax.flatten_util import ravel_pytree  # noqa: E402
from rightpool_agent import jax_loops  # type: ignore[import-not-found]  # noqa: E402

jnp = jax.numpy
NET = {"w1": jnp.ones((4, 8)), "b1": jnp.ones(8), "w2": jnp.ones((8, 8)), "b2": jnp.ones(8), "head": jnp.ones((8, 3))}
COUNT = 4 * 8 + 8 + 8 * 8 + 8 + 8 * 3
BATCH = jnp.ones((16, 4)), jnp.ones((16, 3))
map_ = jax.tree_util.tree_map


def predict(net: Any, x: Any) -> Any:
    hidden = jnp.tanh(x @ net["w1"] + net["b1"])
    return jnp.tanh(hidden @ net["w2"] + net["b2"]) @ net["head"]


def loss_of(net: Any, batch: Any) -> Any:
    x, y = batch
    return jnp.mean((predict(net, x) - y) ** 2)


def sgd(net: Any, batch: Any) -> Any:
    return map_(lambda p, g: p - 0.1 * g, net, jax.grad(loss_of)(net, batch))


def adam(state: Any, batch: Any) -> Any:
    """Adam with decay added to the gradients, clipped by the norm of all updates, with averaged parameters."""
    net, mean, square, average = state
    loss, grads = jax.value_and_grad(loss_of)(net, batch)
    grads = map_(lambda g, p: g + 0.01 * p, grads, net)
    mean = map_(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = map_(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)
    updates = map_(lambda m, s: m / (jnp.sqrt(s) + 1e-8), mean, square)
    norm = jnp.sqrt(sum(jnp.sum(one**2) for one in updates.values()))
    net = map_(lambda p, u: p - 0.1 * u / norm, net, updates)
    average = map_(lambda a, p: 0.99 * a + 0.01 * p, average, net)
    return (net, mean, square, average), {"loss": loss, "norm": norm}


def accumulating(net: Any, batches: Any) -> Any:
    """Gradients of several batches are added up by a scan."""

    def add(grads: Any, batch: Any) -> Any:
        return map_(jnp.add, grads, jax.grad(loss_of)(net, batch)), None

    grads, _ = jax.lax.scan(add, map_(jnp.zeros_like, net), batches)
    return map_(lambda p, g: p - 0.1 * g, net, grads)


def in_turns(state: Any, batch: Any) -> Any:
    """Gradients are kept, and used in each fourth call (Optax `MultiSteps`)."""
    net, kept, calls = state
    kept = map_(jnp.add, kept, jax.grad(loss_of)(net, batch))

    def update() -> Any:
        return map_(lambda p, g: p - 0.1 * g, net, kept), map_(jnp.zeros_like, kept)

    net, kept = jax.lax.cond(calls % 4 == 3, update, lambda: (net, kept))
    return net, kept, calls + 1


def muon(state: Any, batch: Any) -> Any:
    """Momentum goes through matrix products."""
    net, momentum = state
    momentum = map_(lambda m, g: 0.9 * m + g, momentum, jax.grad(loss_of)(net, batch))

    def orthogonal(m: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, x: 1.5 * x - 0.5 * x @ x.T @ x, m / jnp.linalg.norm(m))

    return map_(lambda p, m: p - 0.1 * (orthogonal(m) if m.ndim == 2 else m), net, momentum), momentum


def with_target(state: Any, batch: Any) -> Any:
    """A network that follows the trained one is used for the gradients, as in DDPG."""
    net, target = state
    x, _ = batch
    net = sgd(net, (x, jax.lax.stop_gradient(predict(target, x))))
    return net, map_(lambda t, p: 0.9 * t + 0.1 * p, target, net)


def normalized(state: Any, batch: Any) -> Any:
    """Statistics of a normalization come back, too."""
    net, mean = state
    mean = 0.9 * mean + 0.1 * jnp.mean(jnp.tanh(batch[0] @ net["w1"]), axis=0)
    return sgd(net, batch), mean


def scaled(state: Any, batch: Any) -> Any:
    """The loss is scaled by a factor that depends on whether gradients are finite; so is the learning rate."""
    net, factor, rate = state
    grads = jax.grad(lambda net: factor * loss_of(net, batch))(net)
    finite = jnp.all(jnp.asarray([jnp.all(jnp.isfinite(g)) for g in grads.values()]))
    after = map_(lambda p, g: jnp.where(finite, p - rate * g / factor, p), net, grads)
    return after, jnp.where(finite, factor * 2.0, factor * 0.5), rate * 0.99


def epochs(state: Any, batches: Any) -> Any:
    return jax.lax.scan(adam, state, batches)


def layers(net: Any, batch: Any) -> Any:
    """The same layer many times, by a scan, in mixed precision."""

    def loss(net: Any) -> Any:
        x, y = batch
        low = map_(lambda p: p.astype(jnp.bfloat16), net)

        @jax.checkpoint
        def layer(x: Any, p: Any) -> Any:
            return jnp.tanh(x @ p["w"] + p["b"]), None

        out, _ = jax.lax.scan(layer, x.astype(jnp.bfloat16), low)
        return jnp.mean((out[:, :3] - y) ** 2)

    return map_(lambda p, g: p - 0.1 * g, net, jax.grad(loss)(net))


def errors(net: Any, batch: Any) -> Any:
    return jnp.mean((predict(net, batch[0]) - batch[1]) ** 2, axis=0)


def uncertain(net: Any, batch: Any) -> Any:
    """The weights of the losses are learned, one by one."""

    def loss(net: Any) -> Any:
        return sum(jnp.exp(-net["s"][i]) * errors(net["net"], batch)[i] + net["s"][i] for i in range(3))

    return map_(lambda p, g: p - 0.1 * g, net, jax.grad(loss)(net))


def with_own_rate(state: Any, batch: Any) -> Any:
    """The learning rate follows the gradients, as in D-Adaptation."""
    net, rate = state
    grads = jax.grad(loss_of)(net, batch)
    rate = jnp.maximum(rate, rate * sum(jnp.sum(rate * grads[name] * net[name]) for name in net))
    return map_(lambda p, g: p - rate * g, net, grads), rate


def zeros() -> Any:
    return map_(jnp.zeros_like, NET)


def many(batch: Any) -> Any:
    return map_(lambda one: jnp.stack([one] * 5), batch)


LAYERS = {"w": jnp.ones((6, 4, 4)), "b": jnp.ones((6, 4))}


@pytest.mark.parametrize(
    ("step", "state", "batch", "expected"),
    [
        (sgd, NET, BATCH, COUNT),
        (adam, (NET, zeros(), zeros(), NET), BATCH, COUNT),
        (jax.jit(adam), (NET, zeros(), zeros(), NET), BATCH, COUNT),
        (accumulating, NET, many(BATCH), COUNT),
        (in_turns, (NET, zeros(), 0), BATCH, COUNT),
        (muon, (NET, zeros()), BATCH, COUNT),
        (with_target, (NET, NET), BATCH, COUNT),
        (normalized, (NET, jnp.ones(8)), BATCH, COUNT),
        (scaled, (NET, jnp.float32(2.0), jnp.float32(0.1)), BATCH, COUNT),
        (epochs, (NET, zeros(), zeros(), NET), many(BATCH), COUNT),
        (layers, LAYERS, BATCH, 6 * 4 * 5),
        (uncertain, {"net": NET, "s": jnp.zeros(3)}, BATCH, COUNT + 3),
        (with_own_rate, (NET, jnp.float32(0.1)), BATCH, COUNT),
        (lambda w, x: w - jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w), jnp.ones((4, 2)), BATCH[0], 8),
    ],
    ids=[
        *("sgd", "adam", "jit in jit", "accumulated", "in turns", "muon", "target", "statistics", "scaled", "epochs"),
        *("layers", "weights of losses", "own rate", "one matrix"),
    ],
)
def test_parameters_are_told_from_other_state(step: Callable[..., Any], state: Any, batch: Any, expected: int) -> None:
    found = jax_loops.find(jax.make_jaxpr(step)(state, batch)).parameters
    assert found is not None
    assert (found.count, found.bytes, found.dtype) == (expected, 4 * expected, "float32")


def test_a_frozen_part_is_not_trained() -> None:
    def step(base: Any, adapter: Any, batch: Any) -> Any:
        x, y = batch
        grads = jax.grad(lambda a: jnp.mean((predict(base, x) @ a["down"] @ a["up"] - y) ** 2))(adapter)
        return base, map_(lambda p, g: p - 0.1 * g, adapter, grads)

    adapter = {"down": jnp.ones((3, 2)), "up": jnp.ones((2, 3))}
    found = jax_loops.find(jax.make_jaxpr(step)(NET, adapter, BATCH)).parameters
    assert found is not None and found.count == 12


def recurrent(state: Any, batch: Any) -> Any:
    """What a network remembers goes on to the next batch, gated element by element."""
    net, memory = state
    x, y = batch

    def loss(net: Any) -> Any:
        gate = jax.nn.sigmoid(x @ net["w1"] + net["b1"])
        after = gate * memory + (1.0 - gate) * jnp.tanh(memory @ net["w2"] + net["b2"])
        return jnp.mean((after @ net["head"] - y) ** 2), after

    grads, after = jax.grad(loss, has_aux=True)(net)
    return map_(lambda p, g: p - 0.1 * g, net, grads), after


def applied(net: Any, grads: Any) -> Any:
    """Gradients come from another function."""
    return map_(lambda p, g: p - 0.1 * g, net, grads)


def searched(state: Any, batch: Any) -> Any:
    """Gradient descent that looks for the size of its step, and keeps it (JAXopt)."""
    net, size = state
    loss, grads = jax.value_and_grad(loss_of)(net, batch)

    def worse(tried: Any) -> Any:
        return loss_of(tried[0], batch) > loss

    def shorter(tried: Any) -> Any:
        size = 0.5 * tried[1]
        return map_(lambda p, g: p - size * g, net, grads), size

    return jax.lax.while_loop(worse, shorter, shorter((net, 4.0 * size)))


def natural(state: Any, batch: Any) -> Any:
    """How all parameters act together is kept in a matrix."""
    net, fisher = state
    flat, restored = ravel_pytree(net)
    grads = jax.grad(lambda flat: loss_of(restored(flat), batch))(flat)
    fisher = 0.9 * fisher + 0.1 * jnp.outer(grads, grads)
    return restored(flat - 0.1 * jnp.linalg.solve(fisher + jnp.eye(COUNT), grads)), fisher


def covariance(state: Any, batch: Any) -> Any:
    """An evolution strategy: the best of those that are drawn make the next mean, and how they are spread (CMA-ES)."""
    mean, spread, path, size = state
    drawn = mean + size * jax.random.normal(jax.random.PRNGKey(0), (16, 4)) @ spread.T
    best = drawn[jnp.argsort(((batch[0] @ drawn.T - 1) ** 2).sum(0))[:4]]
    apart = (best - mean) / size
    path = 0.9 * path + 0.1 * apart.mean(0)
    spread = 0.9 * spread + 0.1 * apart.T @ apart
    return mean + size * apart.mean(0), spread, path, size * jnp.exp(0.1 * (jnp.linalg.norm(path) - 1))


def with_temperature(net: Any, batch: Any) -> Any:
    def loss(net: Any) -> Any:
        return jnp.mean((predict(net["net"], batch[0]) * jnp.exp(net["heat"]) - batch[1]) ** 2)

    return map_(lambda p, g: p - 0.1 * g, net, jax.grad(loss)(net))


def entropy_regularized(state: Any, batch: Any) -> Any:
    """The weight of the entropy is not one of the actor's parameters, and follows it (SAC)."""
    actor, heat = state
    chances = lambda actor: jax.nn.log_softmax(predict(actor, batch[0]))  # noqa: E731
    grads = jax.grad(lambda actor: jnp.mean(jnp.exp(heat) * chances(actor) - batch[1]))(actor)
    return map_(lambda p, g: p - 0.1 * g, actor, grads), heat - 0.1 * jnp.exp(heat) * (1.0 - jnp.mean(chances(actor)))


def weighted(net: Any, batch: Any) -> Any:
    """The weights of the losses are learned, each loss being a single number."""

    def loss(net: Any) -> Any:
        losses = jnp.stack([loss_of(net["net"], (batch[0], y)) for y in (batch[1], 2.0 * batch[1], 3.0 * batch[1])])
        return jnp.sum(jnp.exp(-net["s"]) * losses + net["s"])

    return map_(lambda p, g: p - 0.1 * g, net, jax.grad(loss)(net))


def constrained(state: Any, batch: Any) -> Any:
    """Multipliers follow the errors, step by step."""
    net, multipliers = state
    grads = jax.grad(lambda net: jnp.sum((1.0 + multipliers) * errors(net, batch)))(net)
    return map_(lambda p, g: p - 0.1 * g, net, grads), jnp.maximum(0.0, multipliers + errors(net, batch) - 0.1)


@pytest.mark.parametrize(
    ("step", "state", "batch"),
    [
        (recurrent, (NET, jnp.ones((16, 8))), BATCH),
        (applied, NET, NET),
        (lambda net, batch: loss_of(net, batch), NET, BATCH),
        (lambda net, batch: jax.grad(loss_of)(net, batch), NET, BATCH),
        (searched, (NET, jnp.float32(1.0)), BATCH),
        (natural, (NET, jnp.eye(COUNT)), BATCH),
        (covariance, (jnp.ones(4), jnp.eye(4), jnp.ones(4), jnp.float32(1.0)), BATCH),
        (with_temperature, {"net": NET, "heat": jnp.zeros(())}, BATCH),
        (entropy_regularized, (NET, jnp.zeros(())), BATCH),
        (weighted, {"net": NET, "s": jnp.zeros(3)}, BATCH),
        (constrained, (NET, jnp.zeros(3)), BATCH),
    ],
    ids=[
        *("recurrent", "applied", "evaluation", "gradients", "line search", "natural gradient", "evolution"),
        *("temperature", "entropy", "weights of losses", "constraints"),
    ],
)
def test_parameters_are_absent_where_they_cant_be_told(step: Callable[..., Any], state: Any, batch: Any) -> None:
    assert jax_loops.find(jax.make_jaxpr(step)(state, batch)).parameters is None
