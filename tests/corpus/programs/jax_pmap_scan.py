# several steps in one call by lax.scan, on all devices by pmap (Flax' and T5X' older training loops)
# jax
import functools

import jax
import jax.numpy as jnp
import numpy as np


@functools.partial(jax.pmap, axis_name="batch")
def some_steps(params, batches):
    def step(params, batch):
        x, y = batch
        value, grads = jax.value_and_grad(lambda p: jnp.mean((jnp.tanh(x @ p["w"]) @ p["v"] - y) ** 2))(params)
        grads = jax.lax.pmean(grads, "batch")
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value

    return jax.lax.scan(step, params, batches)


n = jax.local_device_count()
rng = np.random.default_rng(0)
params = {"w": jnp.ones((n, 6, 8)) * 0.1, "v": jnp.ones((n, 8, 2)) * 0.1}
steps = samples = 0
for _ in range(6):
    x, y = rng.normal(size=(n, 4, 5, 6)).astype("float32"), rng.normal(size=(n, 4, 5, 2)).astype("float32")
    params, values = some_steps(params, (x, y))
    steps, samples = steps + 4, samples + n * 4 * 5
print(float(values.sum()).hex())
truth(steps=steps, samples=samples, parameters=64)
