# a WGAN with a small generator: the critic learns five times, each time from a new batch, for each step of it
# jax
import jax
import jax.numpy as jnp
import numpy as np


def judge(d, x):
    return jnp.mean(jnp.tanh(x @ d["a"]) @ d["b"])


def fake(g, noise):
    return jnp.tanh(jnp.tanh(noise @ g["w"]) @ g["v"]) @ g["u"]


@jax.jit
def train_d(d, g, real, noise):
    grads = jax.grad(lambda d: judge(d, fake(g, noise)) - judge(d, real))(d)
    return jax.tree.map(lambda p, q: jnp.clip(p - 0.1 * q, -0.1, 0.1), d, grads)


@jax.jit
def train_g(g, d, noise):
    grads = jax.grad(lambda g: -judge(d, fake(g, noise)))(g)
    return jax.tree.map(lambda p, q: p - 0.1 * q, g, grads)


d = {"a": jnp.ones((6, 256)) * 0.1, "b": jnp.ones((256, 1)) * 0.1}
g = {"w": jnp.ones((3, 4)) * 0.1, "v": jnp.ones((4, 4)) * 0.1, "u": jnp.ones((4, 6)) * 0.1}
rng = np.random.default_rng(3)
steps = samples = 0
for i in range(12):
    for _ in range(5):
        noise = rng.normal(size=(12, 3)).astype("float32")
        d = train_d(d, g, rng.normal(size=(12, 6)).astype("float32"), noise)
        steps, samples = steps + 1, samples + 12
    g = train_g(g, d, rng.normal(size=(12, 3)).astype("float32"))
print(float(d["a"].sum()).hex(), float(g["w"].sum()).hex())
truth(steps=steps, samples=samples, parameters=d["a"].size + d["b"].size + sum(p.size for p in g.values()))
