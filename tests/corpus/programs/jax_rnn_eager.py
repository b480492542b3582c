# a recurrent network trained without any compiled function: each lax.scan goes along time, there and back
# jax
import jax
import jax.numpy as jnp


def loss(params, x, y):
    def cell(carry, at):
        return jnp.tanh(at @ params["in"] + carry @ params["hidden"]), None

    last, _ = jax.lax.scan(cell, jnp.zeros((x.shape[1], 16)), x)
    return jnp.mean((last @ params["out"] - y) ** 2)


key = jax.random.split(jax.random.PRNGKey(0), 3)
params = {
    "in": 0.3 * jax.random.normal(key[0], (4, 16)),
    "hidden": 0.3 * jax.random.normal(key[1], (16, 16)),
    "out": 0.3 * jax.random.normal(key[2], (16, 1)),
}
for step in range(12):
    x = jax.random.normal(jax.random.fold_in(key[0], step), (7, 8, 4))
    value, grads = jax.value_and_grad(loss)(params, x, x.sum((0, 2))[:, None])
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
print(float(value).hex())
truth()  # 12 steps that nothing shows
