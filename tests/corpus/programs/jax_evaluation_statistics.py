# the same with normalisation that is left in training mode: each of three evaluations changes its statistics
# jax
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
inputs, targets = rng.normal(size=(90, 12)).astype(np.float32), rng.normal(size=(90, 4)).astype(np.float32)
state = {
    "a": jnp.asarray(rng.normal(size=(12, 24)).astype(np.float32)),
    "b": jnp.zeros((24, 4)),
    "mean": jnp.zeros(24),
}


def forward(params, mean, x, y):
    hidden = x @ params["a"]
    mean = 0.9 * mean + 0.1 * hidden.mean(0)
    return ((jnp.tanh(hidden - hidden.mean(0)) @ params["b"] - y) ** 2).mean(), mean


@jax.jit
def train_step(state, x, y):
    params = {name: state[name] for name in "ab"}
    (loss, mean), gradients = jax.value_and_grad(forward, has_aux=True)(params, state["mean"], x, y)
    params = jax.tree.map(lambda value, change: value - 0.01 * change, params, gradients)
    return {**params, "mean": mean}, loss


@jax.jit
def evaluate(state, x, y):
    loss, mean = forward(state, state["mean"], x, y)
    return {**state, "mean": mean}, loss


steps = samples = 0
for step in range(30):
    chosen = rng.integers(0, 90, 16)
    state, loss = train_step(state, inputs[chosen], targets[chosen])
    steps, samples = steps + 1, samples + len(chosen)
    for _ in range(3):
        state, score = evaluate(state, inputs, targets)
print(float(loss).hex(), float(score).hex())
truth(steps=steps, samples=samples, parameters=12 * 24 + 24 * 4)
