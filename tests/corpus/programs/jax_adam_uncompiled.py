# Flax's vae: a step without any compiled function, where Adam's bias correction is one, called twice a step
# jax
import jax
import jax.numpy as jnp


@jax.jit
def corrected(moment, decay, count):
    return jax.tree.map(lambda one: one / (1 - decay**count), moment)


def loss(params, x, y):
    return jnp.mean((jnp.tanh(x @ params["first"]) @ params["second"] - y) ** 2)


key = jax.random.split(jax.random.PRNGKey(0), 3)
params = {"first": 0.3 * jax.random.normal(key[0], (6, 8)), "second": 0.3 * jax.random.normal(key[1], (8, 1))}
mean = square = jax.tree.map(jnp.zeros_like, params)
for step in range(1, 21):
    x = jax.random.normal(jax.random.fold_in(key[2], step), (12, 6))
    value, grads = jax.value_and_grad(loss)(params, x, x.sum(1, keepdims=True))
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)
    ahead, scale = corrected(mean, 0.9, step), corrected(square, 0.99, step)
    params = jax.tree.map(lambda p, m, s: p - 0.01 * m / (jnp.sqrt(s) + 1e-8), params, ahead, scale)
print(float(value).hex())
truth()  # 20 steps that nothing shows
