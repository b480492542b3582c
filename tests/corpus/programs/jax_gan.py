# a GAN: two training functions, one after the other
# jax
import jax
import jax.numpy as jnp
import numpy as np


def judge(d, x):
    return jnp.mean(jax.nn.softplus(jax.nn.relu(x @ d["a"]) @ d["b"]))


@jax.jit
def train_d(d, g, real, noise):
    grads = jax.grad(lambda d: judge(d, noise @ g["w"]) - judge(d, real))(d)
    return jax.tree_util.tree_map(lambda p, q: p - 0.1 * q, d, grads)


@jax.jit
def train_g(g, d, noise):
    grads = jax.grad(lambda g: -judge(d, noise @ g["w"]))(g)
    return jax.tree_util.tree_map(lambda p, q: p - 0.1 * q, g, grads)


d, g = {"a": jnp.ones((6, 8)) * 0.1, "b": jnp.ones((8, 1)) * 0.1}, {"w": jnp.ones((3, 6)) * 0.1}
rng = np.random.default_rng(3)
for i in range(20):
    noise = rng.normal(size=(12, 3)).astype("float32")
    d = train_d(d, g, rng.normal(size=(12, 6)).astype("float32"), noise)
    g = train_g(g, d, noise)
print(float(d["a"].sum()).hex(), float(g["w"].sum()).hex())
truth(steps=20, samples=240, parameters=d["a"].size + d["b"].size + g["w"].size)
