# k steps in one call by lax.fori_loop, data on the device
# jax
import jax
import jax.numpy as jnp

data = jnp.arange(640.0).reshape(64, 10) / 640


@jax.jit
def several(w, key):
    def step(i, w):
        x = jax.lax.dynamic_slice_in_dim(data, (i % 8) * 8, 8)
        return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w - 1) ** 2))(w)

    return jax.lax.fori_loop(0, 10, step, w)


w = jnp.zeros((10, 3))
for i in range(7):
    w = several(w, jax.random.PRNGKey(i))
print(float(w.sum()).hex())
truth(steps=70, samples=560, parameters=w.size)
