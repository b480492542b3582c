# PureJaxRL's DQN, its state outside of the call: a step in the world in each turn, and in every fourth one that learns
# jax
import jax
import jax.numpy as jnp

BATCH, WORLDS, EVERY, TURNS = 16, 4, 4, 24


def q_values(net, seen):
    return jnp.tanh(seen @ net["w1"]) @ net["w2"]


def learn(carry):
    net, momentum, target, seen, gained, key = carry
    rows = jax.random.randint(key, (BATCH,), 0, len(seen))
    wanted = gained[rows] + 0.9 * q_values(target, seen[rows]).max(-1)

    def loss(net):
        return ((q_values(net, seen[rows])[:, 0] - wanted) ** 2).mean()

    value, grads = jax.value_and_grad(loss)(net)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    return jax.tree.map(lambda p, m: p - 0.01 * m, net, momentum), momentum, value


def turn(state, _):
    net, momentum, target, world, seen, gained, count, learned, key = state
    key, moved, drawn = jax.random.split(key, 3)
    best = q_values(net, world).max(-1)
    seen = jnp.roll(seen, WORLDS, 0).at[:WORLDS].set(world)
    gained = jnp.roll(gained, WORLDS).at[:WORLDS].set(best + world.sum(-1))
    world = jnp.tanh(world + best[:, None] + 0.1 * jax.random.normal(moved, world.shape))
    now = count % EVERY == EVERY - 1
    net, momentum, value = jax.lax.cond(
        now, learn, lambda carry: (carry[0], carry[1], 0.0), (net, momentum, target, seen, gained, drawn)
    )
    target = jax.lax.cond(count % 10 == 0, lambda: net, lambda: target)
    return (net, momentum, target, world, seen, gained, count + 1, learned + now, key), value


@jax.jit
def turns(state):
    return jax.lax.scan(turn, state, None, TURNS)


key = jax.random.PRNGKey(0)
net = {"w1": 0.1 * jax.random.normal(key, (6, 32)), "w2": 0.1 * jax.random.normal(key, (32, 3))}
still, world = jax.tree.map(jnp.zeros_like, net), jnp.zeros((WORLDS, 6))
state = (net, still, net, world, jnp.zeros((64, 6)), jnp.zeros(64), 0, 0, key)
for _ in range(5):
    state, values = turns(state)
    print(float(values[-1]).hex())
assert int(state[7]) == 5 * TURNS // EVERY
truth(steps=None, samples=None)  # 30 of 480, of which nothing tells
