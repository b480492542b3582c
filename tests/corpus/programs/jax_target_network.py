# DDPG and TD3 in JAX: a target network comes back, too, and follows the trained one
# jax
import jax
import jax.numpy as jnp
import numpy as np


def value(net, x):
    return jnp.tanh(x @ net["w"] + net["b"]) @ net["head"]


@jax.jit
def update(state, batch):
    net, target, momentum = state

    def loss(net):
        wanted = batch["reward"] + 0.9 * value(target, batch["next"])[:, 0]
        return jnp.mean((value(net, batch["now"])[:, 0] - wanted) ** 2)

    error, grads = jax.value_and_grad(loss)(net)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    net = jax.tree.map(lambda p, m: p - 0.01 * m, net, momentum)
    target = jax.tree.map(lambda t, p: 0.95 * t + 0.05 * p, target, net)
    return (net, target, momentum), error


net = {"w": jnp.ones((5, 12)) * 0.1, "b": jnp.zeros(12), "head": jnp.ones((12, 1)) * 0.1}
state = net, net, jax.tree.map(jnp.zeros_like, net)
random = np.random.default_rng(0)
for i in range(18):
    now, after = random.normal(size=(2, 10, 5)).astype("float32")
    state, error = update(state, {"now": now, "next": after, "reward": now.sum(1)})
print(float(error).hex())
truth(steps=18, samples=180, parameters=sum(p.size for p in net.values()))
