# a sweep: each learning rate has a step of its own, gradients in one function and the update in another
# jax
import jax
import jax.numpy as jnp
import numpy as np


def loss_of(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["w"]) @ params["v"] - y) ** 2)


gradients = jax.jit(jax.value_and_grad(loss_of))
for rate in (0.1, 0.03, 0.01, 0.003):

    @jax.jit
    def update(params, momentum, grads):
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        return jax.tree.map(lambda p, m: p - rate * m, params, momentum), momentum

    params = {"w": jnp.ones((8, 16)) * 0.1, "v": jnp.ones((16, 1)) * 0.1}
    momentum = jax.tree.map(jnp.zeros_like, params)
    random = np.random.default_rng(0)
    for _ in range(14):
        x = random.normal(size=(6, 8)).astype("float32")
        value, grads = gradients(params, x, x.sum(1, keepdims=True))
        params, momentum = update(params, momentum, grads)
    print(float(value).hex())
truth(steps=56, samples=336)
