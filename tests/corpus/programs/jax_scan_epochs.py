# a training loop of lax.scan over the batches of an epoch (PureJaxRL, many notebooks)
# jax quick
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def epoch(params, xs, ys):
    def step(params, batch):
        x, y = batch
        value, grads = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"] + p["b"] - y) ** 2))(params)
        return jax.tree_util.tree_map(lambda p, g: p - 0.05 * g, params, grads), value

    return jax.lax.scan(step, params, (xs, ys))


params = {"w": jnp.zeros((5, 2)), "b": jnp.zeros(2)}
rng = np.random.default_rng(1)
for _ in range(6):
    params, losses = epoch(params, rng.normal(size=(20, 8, 5)).astype("float32"), np.ones((20, 8, 2), "float32"))
print(float(losses[-1]).hex())
truth(steps=120, samples=960, parameters=12)
