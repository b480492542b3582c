# dropout keys, a step counter and donated state (Flax examples)
# jax
import functools

import jax
import jax.numpy as jnp
import numpy as np


@functools.partial(jax.jit, donate_argnums=(0,))
def train_step(state, batch, key):
    def loss(params):
        keep = jax.random.bernoulli(key, 0.8, batch["image"].shape)
        return jnp.mean((jnp.where(keep, batch["image"], 0) @ params["w"] - batch["label"][:, None]) ** 2)

    value, grads = jax.value_and_grad(loss)(state["params"])
    params = jax.tree_util.tree_map(lambda p, g: p - 0.05 * g, state["params"], grads)
    return {"params": params, "step": state["step"] + 1}, {"loss": value}


state = {"params": {"w": jnp.zeros((9, 1))}, "step": 0}
key = jax.random.PRNGKey(0)
rng = np.random.default_rng(5)
steps = samples = 0
for epoch in range(3):
    for n in (16, 16, 16, 7):
        key, sub = jax.random.split(key)
        batch = {"image": rng.normal(size=(n, 9)).astype("float32"), "label": rng.normal(size=n).astype("float32")}
        state, metrics = train_step(state, batch, sub)
        steps, samples = steps + 1, samples + n
print(float(metrics["loss"]).hex(), int(state["step"]))
truth(steps=steps, samples=samples, parameters=9)
