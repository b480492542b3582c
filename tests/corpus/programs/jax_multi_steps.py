# optax.MultiSteps: gradients are kept in the state; every third call of the step applies them
# jax
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
x, y = rng.normal(size=(90, 12)).astype("float32"), rng.normal(size=(90, 4)).astype("float32")


@jax.jit
def train_step(state, batch):
    def loss(params):
        return jnp.mean((jnp.tanh(batch["x"] @ params["w1"]) @ params["w2"] - batch["y"]) ** 2)

    value, grads = jax.value_and_grad(loss)(state["params"])
    kept = jax.tree.map(lambda old, new: old + (new - old) / (state["mini"] + 1), state["kept"], grads)

    def apply(_):
        return jax.tree.map(lambda p, g: p - 0.1 * g, state["params"], kept), jax.tree.map(jnp.zeros_like, kept)

    params, kept = jax.lax.cond(state["mini"] == 2, apply, lambda _: (state["params"], kept), None)
    return {"params": params, "kept": kept, "mini": (state["mini"] + 1) % 3}, value


params = {"w1": jnp.ones((12, 24)) * 0.1, "w2": jnp.ones((24, 4)) * 0.1}
state = {"params": params, "kept": jax.tree.map(jnp.zeros_like, params), "mini": jnp.zeros((), jnp.int32)}
steps = samples = 0
for epoch in range(3):
    for start in range(0, 90, 16):
        batch = {"x": x[start : start + 16], "y": y[start : start + 16]}
        state, value = train_step(state, batch)
        steps, samples = steps + 1, samples + len(batch["x"])
    print(float(value).hex())
truth(steps=steps, samples=samples, parameters=sum(p.size for p in params.values()))
