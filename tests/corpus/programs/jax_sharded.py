# data parallel by sharded arguments and a mesh
# jax
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("data",))
rows, same = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: jnp.mean(jax.nn.silu(x @ w)))(w), out_shardings=same)
w = jax.device_put(jnp.ones((4, 4)), same)
for i in range(13):
    w = step(w, jax.device_put(np.full((8, 4), i, "float32"), rows))
print(float(w.sum()).hex())
truth(steps=13, samples=104, parameters=w.size)
