# gradients accumulated by lax.scan over micro-batches: one step
# jax
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(w, micro):
    def one(total, x):
        return total + jax.grad(lambda w: jnp.mean((x @ w - 1) ** 2))(w), None

    grads, _ = jax.lax.scan(one, jnp.zeros_like(w), micro)
    return w - 0.1 * grads


w = jnp.zeros((6, 2))
for i in range(14):
    w = step(w, np.full((4, 3, 6), 0.1 * i, "float32"))
print(float(w.sum()).hex())
truth(steps=14, samples=168, parameters=w.size)
