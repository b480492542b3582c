# Flax NNX with an evaluation after each step: its jitted functions hand back all that they are given
# jax
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
inputs, targets = rng.normal(size=(90, 12)).astype(np.float32), rng.normal(size=(90, 4)).astype(np.float32)
params = {"a": jnp.asarray(rng.normal(size=(12, 24)).astype(np.float32)), "b": jnp.zeros((24, 4))}
loss_of = lambda params, x, y: ((jnp.tanh(x @ params["a"]) @ params["b"] - y) ** 2).mean()  # noqa: E731


@jax.jit
def train_step(params, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda value, change: value - 0.01 * change, params, gradients), loss


@jax.jit
def evaluate(params, x, y):
    return params, loss_of(params, x, y)


steps = samples = 0
for step in range(30):
    chosen = rng.integers(0, 90, 16)
    params, loss = train_step(params, inputs[chosen], targets[chosen])
    steps, samples = steps + 1, samples + len(chosen)
    params, score = evaluate(params, inputs, targets)
print(float(loss).hex(), float(score).hex())
truth(steps=steps, samples=samples, parameters=12 * 24 + 24 * 4)
