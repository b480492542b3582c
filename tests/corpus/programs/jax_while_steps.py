# steps until the loss is small, in one lax.while_loop: how many cannot be known from outside
# jax
import jax
import jax.numpy as jnp


@jax.jit
def fit(w, x):
    def loss(w):
        return jnp.mean((x @ w - 1) ** 2)

    def step(state):
        w, n = state
        return w - 0.05 * jax.grad(loss)(w), n + 1

    return jax.lax.while_loop(lambda state: (loss(state[0]) > 0.5) & (state[1] < 100), step, (w, 0))


w = jnp.zeros((4, 1))
for _ in range(5):
    w, n = fit(w, jnp.ones((16, 4)))
print(int(n), float(w.sum()).hex())
truth(steps=None, samples=None)
