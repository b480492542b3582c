# Equinox' filter_pmap: parameters go to all devices as they are, and come out once for each
# jax
import functools

import jax
import jax.numpy as jnp
import numpy as np

n = jax.local_device_count()


@functools.partial(jax.pmap, in_axes=(None, 0, 0), axis_name="device")
def step(net, x, y):
    loss, grads = jax.value_and_grad(lambda net: jnp.mean((jnp.tanh(x @ net["w"] + net["b"]) - y) ** 2))(net)
    grads = jax.lax.pmean(grads, "device")
    return jax.tree.map(lambda p, g: p - 0.1 * g, net, grads), loss


net = {"w": jnp.ones((8, 3)) * 0.1, "b": jnp.zeros(3)}
random = np.random.default_rng(0)
for i in range(12):
    x = random.normal(size=(n, 16, 8)).astype("float32")
    nets, loss = step(net, x, x[..., :3])
    net = jax.tree.map(lambda p: p[0], nets)
print(float(loss[0]).hex())
truth(steps=12, samples=12 * 16 * n, parameters=27)
