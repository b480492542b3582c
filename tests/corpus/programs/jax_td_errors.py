# a DQN with prioritized replay: its step gives back an error for each row, made from the rewards
# jax
import jax
import jax.numpy as jnp
import numpy as np


def values_of(params, states):
    return jnp.tanh(states @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


@jax.jit
def update(params, target, batch):
    def loss_of(params):
        chosen = jnp.take_along_axis(values_of(params, batch["states"]), batch["actions"][:, None], 1)[:, 0]
        errors = batch["rewards"] + 0.9 * values_of(target, batch["following"]).max(1) - chosen
        return jnp.mean(batch["weights"] * errors**2), errors

    (value, errors), grads = jax.value_and_grad(loss_of, has_aux=True)(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), value, errors


rng = np.random.default_rng(0)
params = {
    "w1": jnp.asarray(rng.normal(size=(6, 16)), jnp.float32) * 0.3,
    "b1": jnp.zeros(16),
    "w2": jnp.asarray(rng.normal(size=(16, 3)), jnp.float32) * 0.3,
    "b2": jnp.zeros(3),
}
target = params
states = rng.normal(size=(200, 6)).astype("float32")
rewards = rng.normal(size=200).astype("float32")
priorities = np.ones(200)
steps = 0
for t in range(40):
    rows = rng.choice(199, size=20, p=priorities[:-1] / priorities[:-1].sum())
    batch = {
        "states": states[rows],
        "actions": rng.integers(0, 3, size=20),
        "rewards": rewards[rows],
        "following": states[rows + 1],
        "weights": (1 / priorities[rows]).astype("float32"),
    }
    params, value, errors = update(params, target, batch)
    priorities[rows] = np.abs(errors) + 0.1
    if t % 10 == 9:
        target = params
    steps += 1
print(float(value).hex())
truth(steps=steps, samples=20 * steps, parameters=sum(p.size for p in params.values()))
