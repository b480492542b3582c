# training under constraints (TFCO): the multipliers follow how far each constraint is broken
# jax
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(net, multipliers, x, y):
    def loss(net):
        out = jnp.tanh(x @ net["w"] + net["b"]) @ net["head"]
        broken = jnp.mean(out, axis=0) - 0.2
        return jnp.mean((out - y) ** 2) + jnp.sum(multipliers * broken), broken

    (value, broken), grads = jax.value_and_grad(loss, has_aux=True)(net)
    net = jax.tree.map(lambda p, g: p - 0.05 * g, net, grads)
    return net, jnp.maximum(0.0, multipliers + 0.01 * broken), value


net = {"w": jnp.ones((5, 12)) * 0.1, "b": jnp.zeros(12), "head": jnp.ones((12, 3)) * 0.1}
multipliers = jnp.ones(3)
random = np.random.default_rng(0)
for i in range(16):
    x = random.normal(size=(10, 5)).astype("float32")
    net, multipliers, value = step(net, multipliers, x, x[:, :3])
print(float(value).hex(), float(multipliers.sum()).hex())
truth(steps=16, samples=160, parameters=sum(p.size for p in net.values()))
