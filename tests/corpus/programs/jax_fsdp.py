# Flax nnx 10_fsdp_and_optimizer: sharded parameters and batches, of one shape with a parameter
# jax
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(-1, 1), ("data", "model"))
keys = jax.random.split(jax.random.key(0), 2)
params = {
    "w1": jax.device_put(jax.random.normal(keys[0], (1, 32)), NamedSharding(mesh, P(None, "model"))),
    "b1": jax.device_put(jnp.zeros(32), NamedSharding(mesh, P("model"))),
    "w2": jax.device_put(0.1 * jax.random.normal(keys[1], (32, 1)), NamedSharding(mesh, P("model", None))),
}
momentum = jax.tree.map(jnp.zeros_like, params)


@jax.jit
def step(params, momentum, x, y):
    def loss_fn(p):
        return jnp.mean((jax.nn.relu(x @ p["w1"] + p["b1"]) @ p["w2"] - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, momentum, grads)
    return jax.tree.map(lambda p, m: p - 0.01 * m, params, momentum), momentum, loss


X = np.linspace(-2, 2, 100)[:, None].astype("float32")
random = np.random.default_rng(0)
for i in range(40):
    picked = random.choice(100, 32)
    x, y = jax.device_put((X[picked], 0.8 * X[picked] ** 2 + 0.1), NamedSharding(mesh, P("data")))
    params, momentum, loss = step(params, momentum, x, y)
print(float(loss).hex())
truth(steps=40, samples=1280, parameters=sum(p.size for p in params.values()))
