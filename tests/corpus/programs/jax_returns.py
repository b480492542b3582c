# A2C on trajectories that have time first: what is gained is added up along it, by a scan of its own
# jax
import jax
import jax.numpy as jnp
import numpy as np

TIME, WORLDS, STEPS = 5, 8, 12


def values(net, seen):
    return (jnp.tanh(seen @ net["w1"]) @ net["w2"])[..., 0]


def loss(net, seen, gained):
    found = values(net, seen)

    def backwards(later, now):
        later = now + 0.9 * later
        return later, later

    wanted = jax.lax.scan(backwards, jnp.zeros(WORLDS), gained, reverse=True)[1]
    return ((found - wanted) ** 2).mean()


@jax.jit
def update(net, momentum, seen, gained):
    value, grads = jax.value_and_grad(loss)(net, seen, gained)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    return jax.tree.map(lambda p, m: p - 0.01 * m, net, momentum), momentum, value


rng = np.random.default_rng(0)
net = {
    "w1": jnp.asarray(rng.normal(size=(6, 16)), jnp.float32),
    "w2": jnp.asarray(rng.normal(size=(16, 1)), jnp.float32),
}
momentum = jax.tree.map(jnp.zeros_like, net)
for _ in range(STEPS):
    seen = rng.normal(size=(TIME, WORLDS, 6)).astype(np.float32)
    net, momentum, value = update(net, momentum, seen, seen.sum(-1))
print(float(value).hex())
truth(steps=STEPS, samples=STEPS * WORLDS, parameters=sum(one.size for one in jax.tree.leaves(net)))
