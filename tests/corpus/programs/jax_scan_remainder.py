# an epoch of whole batches by lax.scan, and a step of its own for the rows that are left
# jax
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
x, y = rng.normal(size=(70, 12)).astype("float32"), rng.normal(size=(70, 4)).astype("float32")


def update(params, batch):
    x, y = batch
    value, grads = jax.value_and_grad(lambda p: jnp.mean((jnp.tanh(x @ p["w"]) @ p["v"] - y) ** 2))(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


@jax.jit
def epoch_of(params, xs, ys):
    return jax.lax.scan(update, params, (xs, ys))


last = jax.jit(lambda params, x, y: update(params, (x, y)))
params = {"w": jnp.ones((12, 32)) * 0.1, "v": jnp.ones((32, 4)) * 0.1}
steps = samples = 0
for epoch in range(5):
    order = rng.permutation(70)
    whole = order[:64].reshape(4, 16)
    params, values = epoch_of(params, x[whole], y[whole])
    params, value = last(params, x[order[64:]], y[order[64:]])
    steps, samples = steps + 5, samples + 70
    print(float(value).hex())
truth(steps=steps, samples=samples, parameters=sum(p.size for p in params.values()))
