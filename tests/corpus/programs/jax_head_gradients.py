# gradients of two heads of one shape, the base is frozen: no batch comes to the function that updates
# jax
import jax
import jax.numpy as jnp
import numpy as np

params = {"base": jnp.ones((6, 16)), "one": jnp.zeros((16, 1)), "two": jnp.ones((16, 1))}


@jax.jit
def grads_of(one, two, base, x, y):
    def loss(heads):
        h = jax.nn.silu(x @ base)
        return jnp.mean((h @ heads[0] - y) ** 2 + (h @ heads[1] + y) ** 2)

    return jax.grad(loss)((one, two))


@jax.jit
def update(params, one, two):
    return {**params, "one": params["one"] - 0.1 * one, "two": params["two"] - 0.1 * two}


random = np.random.default_rng(0)
for i in range(25):
    x = random.normal(size=(8, 6)).astype("float32")
    one, two = grads_of(params["one"], params["two"], params["base"], x, x[:, :1])
    params = update(params, one, two)
print(float(params["one"].sum()).hex())
truth(steps=25, samples=200, parameters=32)
