# a recurrent network by lax.scan over time, with the hidden state kept (char-rnn in Haiku)
# jax
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(params, batch):
    def loss(params):
        def cell(h, x):
            h = jnp.tanh(x @ params["i"] + h @ params["h"])
            return h, h @ params["o"]

        first = jnp.zeros((batch["x"].shape[0], 6))
        _, out = jax.lax.scan(cell, first, jnp.swapaxes(batch["x"], 0, 1))
        return jnp.mean((out[-1] - batch["y"]) ** 2)

    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


params = {"i": jnp.ones((3, 6)) * 0.1, "h": jnp.eye(6), "o": jnp.ones((6, 1))}
for i in range(12):
    params = step(params, {"x": np.full((4, 7, 3), i / 12, "float32"), "y": np.ones((4, 1), "float32")})
print(float(params["o"].sum()).hex())
truth(steps=12, samples=48, parameters=sum(p.size for p in params.values()))
