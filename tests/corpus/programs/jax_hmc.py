# Hamiltonian Monte Carlo (Blackjax): leapfrogs in a loop, whose end is accepted or not
# jax
import jax
import jax.numpy as jnp
import numpy as np

random = np.random.default_rng(0)
x = random.normal(size=(32, 6)).astype("float32")
y = x @ np.arange(6, dtype="float32")


def log_density(w):
    return -jnp.sum((x @ w["w"] + w["b"] - y) ** 2) - jnp.sum(w["w"] ** 2)


def leapfrog(_, state):
    position, momentum, _, grad = state
    momentum = jax.tree.map(lambda m, g: m + 0.0005 * g, momentum, grad)
    position = jax.tree.map(lambda p, m: p + 0.001 * m, position, momentum)
    density, grad = jax.value_and_grad(log_density)(position)
    return position, jax.tree.map(lambda m, g: m + 0.0005 * g, momentum, grad), density, grad


def energy(momentum, density):
    return sum(jnp.sum(m**2) for m in jax.tree.leaves(momentum)) / 2 - density


def sample(state, key):
    position, density, grad = state
    one, other = jax.random.split(key)
    momentum = {"w": jax.random.normal(one, (6,)), "b": jax.random.normal(other)}
    end = jax.lax.fori_loop(0, 5, leapfrog, (position, momentum, density, grad))
    likely = energy(momentum, density) - energy(end[1], end[2]) > jnp.log(jax.random.uniform(key))
    return jax.lax.cond(likely, lambda: (end[0], end[2], end[3]), lambda: state)


@jax.jit
def chain(state, key):
    return jax.lax.scan(lambda state, key: (sample(state, key), state[0]), state, jax.random.split(key, 4))


position = {"w": jnp.zeros(6), "b": jnp.zeros(())}
state = position, *jax.value_and_grad(log_density)(position)
key = jax.random.PRNGKey(0)
for _ in range(12):
    key, now = jax.random.split(key)
    state, positions = chain(state, now)
print(float(state[0]["w"].sum()).hex())
truth(steps=48, parameters=7)
