# adapters beside frozen parameters, which go in and do not come out (LoRA)
# jax
import jax
import jax.numpy as jnp
import numpy as np

base = {"w": jnp.ones((16, 16)) * 0.05, "v": jnp.ones((16, 4)) * 0.05}


@jax.jit
def step(adapter, base, batch):
    def loss(adapter):
        h = jax.nn.relu(batch["x"] @ (base["w"] + adapter["a"] @ adapter["b"]))
        return jnp.mean((h @ base["v"] - batch["y"]) ** 2)

    value, grads = jax.value_and_grad(loss)(adapter)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, adapter, grads), value


adapter = {"a": jnp.ones((16, 2)) * 0.1, "b": jnp.zeros((2, 16))}
for i in range(15):
    adapter, value = step(adapter, base, {"x": np.full((6, 16), i / 15, "float32"), "y": np.ones((6, 4), "float32")})
print(float(value).hex())
truth(steps=15, samples=90, parameters=sum(p.size for p in adapter.values()))
