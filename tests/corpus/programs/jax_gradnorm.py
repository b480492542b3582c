# GradNorm: the weights of two losses are learned, so that their gradients have about the same norm
# jax
import jax
import jax.numpy as jnp
import numpy as np


def losses(net, x, y):
    out = jnp.tanh(x @ net["shared"] + net["b"]) @ net["heads"]
    return jnp.mean((out - y) ** 2, axis=0)


@jax.jit
def step(state, batch):
    net, weights = state
    grads = jax.grad(lambda net: jnp.sum(weights * losses(net, *batch)))(net)
    shared = jax.jacobian(losses)(net, *batch)["shared"]

    def apart(weights):
        norms = weights * jnp.sqrt(jnp.sum(shared**2, axis=(1, 2)))
        return jnp.sum(jnp.abs(norms - jax.lax.stop_gradient(norms.mean())))

    weights = weights - 0.01 * jax.grad(apart)(weights)
    return jax.tree.map(lambda p, g: p - 0.05 * g, net, grads), 2.0 * weights / weights.sum()


net = {"shared": jnp.ones((5, 12)) * 0.1, "b": jnp.zeros(12), "heads": jnp.ones((12, 2)) * 0.1}
state = net, jnp.ones(2)
random = np.random.default_rng(0)
for i in range(15):
    x = random.normal(size=(8, 5)).astype("float32")
    state = step(state, (x, x[:, :2] * np.asarray([1.0, 9.0], "float32")))
print(float(state[0]["heads"].sum()).hex(), [float(one).hex() for one in state[1]])
truth(steps=15, samples=120, parameters=sum(p.size for p in jax.tree.leaves(state)))
