# single steps to warm up, then loops of steps and single ones in turn, with averaged parameters after each
# jax
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)


def update(params, batch):
    x, y = batch
    value, grads = jax.value_and_grad(lambda p: jnp.mean((jnp.tanh(x @ p["w"]) @ p["v"] - y) ** 2))(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


@jax.jit
def many(params, xs, ys):
    return jax.lax.scan(update, params, (xs, ys))


@jax.jit
def averaged(average, params):
    return jax.tree.map(lambda a, p: 0.9 * a + 0.1 * p, average, params)


def data(*shape):
    return rng.normal(size=(*shape, 16, 12)).astype("float32"), rng.normal(size=(*shape, 16, 4)).astype("float32")


step = jax.jit(lambda params, x, y: update(params, (x, y)))
average = params = {"w": jnp.ones((12, 32)) * 0.1, "v": jnp.ones((32, 4)) * 0.1}
params, value = step(params, *data())
for _ in range(3):
    for _ in range(3):
        params, values = many(params, *data(10))
        average = averaged(average, params)
    for _ in range(7):
        params, value = step(params, *data())
        average = averaged(average, params)
print(float(value).hex(), float(average["w"].sum()).hex())
truth(steps=1 + 3 * (30 + 7), samples=16 * (1 + 3 * (30 + 7)), parameters=512)
