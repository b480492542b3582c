# many steps in one call of lax.scan, an evaluation, then single steps (NumPyro's SVI.run without and with its progress)
# jax
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)


def loss_of(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["w"]) @ params["v"] - y) ** 2)


def update(params, batch):
    value, grads = jax.value_and_grad(loss_of)(params, *batch)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


@jax.jit
def many(params, xs, ys):
    return jax.lax.scan(update, params, (xs, ys))


@jax.jit
def evaluate(params, xs, ys):
    return jax.lax.scan(lambda total, batch: (total + loss_of(params, *batch), None), 0.0, (xs, ys))[0]


def data(*shape):
    return rng.normal(size=(*shape, 16, 12)).astype("float32"), rng.normal(size=(*shape, 16, 4)).astype("float32")


step = jax.jit(lambda params, x, y: update(params, (x, y)))
params = {"w": jnp.ones((12, 32)) * 0.1, "v": jnp.ones((32, 4)) * 0.1}
params, values = many(params, *data(60))
print(float(evaluate(params, *data(3))).hex())
for _ in range(40):
    params, value = step(params, *data())
print(float(evaluate(params, *data(3))).hex())
truth(steps=100, samples=1600, parameters=512)
