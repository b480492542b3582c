# Keras' guide to a training loop in JAX: two models in turn, with an evaluation that hands state on
# jax
import jax
import jax.numpy as jnp
import numpy as np


def phase(seed, steps, rows):
    def forward(params, x):
        return jnp.tanh(x @ params["w"]) @ params["v"]

    def loss_of(params, x, y):
        return jnp.mean((forward(params, x) - y) ** 2)

    @jax.jit
    def train_step(state, data):
        params, momentum, seen = state
        value, grads = jax.value_and_grad(loss_of)(params, *data)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        return value, (jax.tree.map(lambda p, m: p - 0.01 * m, params, momentum), momentum, seen + value)

    @jax.jit
    def eval_step(state, data):
        params, seen = state
        value = loss_of(params, *data)
        return value, (params, seen + value)

    key = jax.random.PRNGKey(seed)
    params = {"w": 0.3 * jax.random.normal(key, (8, 32)), "v": jnp.zeros((32, 1))}
    state = params, jax.tree.map(jnp.zeros_like, params), jnp.zeros(())
    random = np.random.default_rng(seed)
    for step in range(steps):
        x = random.normal(size=(rows if step < steps - 1 else rows // 2, 8)).astype("float32")
        value, state = train_step(state, (x, x.sum(1, keepdims=True)))
    state = state[0], jnp.zeros(())
    for _ in range(9):
        x = random.normal(size=(rows, 8)).astype("float32")
        _, state = eval_step(state, (x, x.sum(1, keepdims=True)))
    print(float(value).hex(), float(state[1]).hex())


phase(0, 32, 8)
phase(1, 32, 8)
truth(steps=64, samples=2 * (31 * 8 + 4), parameters=8 * 32 + 32)
