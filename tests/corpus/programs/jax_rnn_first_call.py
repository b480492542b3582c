# Flax's seq2seq, Equinox's train_rnn: the first call and the evaluation loop over time in no compiled function
# jax
import jax
import jax.numpy as jnp


def forward(params, x, carry):
    def cell(carry, at):
        hidden = jnp.tanh(at @ params["in"] + carry @ params["hidden"])
        return hidden, hidden

    _, states = jax.lax.scan(cell, carry, jnp.swapaxes(x, 0, 1))
    return states[-1] @ params["out"]


def loss(params, x, y, carry):
    return jnp.mean((forward(params, x, carry) - y) ** 2)


@jax.jit
def train_step(params, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y, jnp.zeros((x.shape[0], 16)))
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


@jax.jit
def decode(params, x):
    return forward(params, x, jnp.zeros((x.shape[0], 16)))


key = jax.random.split(jax.random.PRNGKey(0), 3)
params = {
    "in": 0.3 * jax.random.normal(key[0], (4, 16)),
    "hidden": 0.3 * jax.random.normal(key[1], (16, 16)),
    "out": 0.3 * jax.random.normal(key[2], (16, 1)),
}
forward(params, jnp.zeros((1, 7, 4)), jnp.zeros((1, 16)))  # as `init` does, to know the shapes
steps = samples = 0
for step in range(30):
    x = jax.random.normal(jax.random.fold_in(key[0], step), (8, 7, 4))
    params, value = train_step(params, x, x.sum((1, 2))[:, None])
    steps, samples = steps + 1, samples + len(x)
    if step % 10 == 9:
        print(float(value).hex(), decode(params, x[:2]).shape)
print(forward(params, jnp.ones((2000, 7, 4)), jnp.zeros((2000, 16))).shape)  # an evaluation, with larger states
truth(steps=steps, samples=samples, parameters=sum(p.size for p in params.values()))
