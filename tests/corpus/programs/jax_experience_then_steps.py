# Brax' PPO, PureJaxRL: one call collects experience in a loop, and learns from it in another; which one trains?
# jax
import functools

import jax
import jax.numpy as jnp


def act(params, seen):
    return jnp.tanh(jnp.tanh(seen @ params["w"]) @ params["v"])


def train_once(carry, _):
    params, world, key = carry

    def move(world, key):
        action = act(params, world)
        after = 0.9 * world + 0.1 * jax.random.normal(key, world.shape) + jnp.pad(action, ((0, 0), (0, 4)))
        return after, (world, action, -(after**2).sum(1))

    key, *keys = jax.random.split(key, 11)
    world, (seen, actions, gains) = jax.lax.scan(move, world, jnp.stack(keys))

    def learn(params, batch):
        seen, actions, gains = batch
        value, grads = jax.value_and_grad(lambda p: (((act(p, seen) - actions) ** 2).sum(1) * gains).mean())(params)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value

    def epoch(params, _):
        return jax.lax.scan(learn, params, (seen, actions, gains))

    params, values = jax.lax.scan(epoch, params, None, length=2)
    return (params, world, key), values


@functools.partial(jax.pmap, axis_name="i")
def train(params, world, key):
    (params, world, key), values = jax.lax.scan(train_once, (params, world, key), None, length=3)
    return params, world, key, values


@jax.jit
def evaluate(params, world):
    def move(world, _):
        return 0.9 * world + 0.01 * (act(params, world) ** 2).sum(), None

    return jax.lax.scan(move, world, None, 20)[0]


params = {"w": jnp.ones((1, 6, 8)) * 0.1, "v": jnp.ones((1, 8, 2)) * 0.1}
world, key = jnp.ones((1, 40, 6)), jax.random.split(jax.random.PRNGKey(0), 1)
judged = jnp.ones((16, 6))
for _ in range(6):
    params, world, key, values = train(params, world, key)
    judged = evaluate(jax.tree.map(lambda one: one[0], params), judged)
    print(float(values.sum()).hex(), float(judged.sum()).hex())
truth(steps=None, samples=None)
