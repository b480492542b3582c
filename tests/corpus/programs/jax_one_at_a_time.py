# temporal differences learned from each state at once: a step gets one state, and no batch
# jax
import jax
import jax.numpy as jnp
import numpy as np


def value_of(params, state):
    return (jnp.tanh(state @ params["w1"] + params["b1"]) @ params["w2"])[0]


@jax.jit
def train_step(params, state, target):
    def loss_of(params):
        return (value_of(params, state) - target) ** 2

    value, grads = jax.value_and_grad(loss_of)(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), value


rng = np.random.default_rng(0)
params = {
    "w1": jnp.asarray(rng.normal(size=(6, 16)), jnp.float32) * 0.3,
    "b1": jnp.zeros(16),
    "w2": jnp.asarray(rng.normal(size=(16, 1)), jnp.float32) * 0.3,
}
steps = 0
for t in range(40):
    state = rng.normal(size=6).astype("float32")
    params, value = train_step(params, state, np.float32(state.sum() + 0.9))
    steps += 1
print(float(value).hex())
truth(steps=steps, samples=steps, parameters=sum(p.size for p in params.values()))
