# gradients in one jitted function, the update in another (Haiku, optax tutorials)
# jax quick
import jax
import jax.numpy as jnp
import numpy as np

grad = jax.jit(jax.grad(lambda p, x, y: jnp.mean((jax.nn.relu(x @ p["a"]) @ p["b"] - y) ** 2)))
update = jax.jit(lambda p, g, m: (jax.tree_util.tree_map(lambda p, m, g: p - 0.1 * (0.9 * m + g), p, m, g), g))

p = {"a": jnp.ones((8, 16)) * 0.05, "b": jnp.ones((16, 1)) * 0.05}
m = jax.tree_util.tree_map(jnp.zeros_like, p)
for i in range(18):
    g = grad(p, np.full((10, 8), i / 9, "float32"), np.ones((10, 1), "float32"))
    p, m = update(p, g, m)
print(float(p["b"].sum()).hex())
truth(steps=18, samples=180)
