# a transformer that has time first, as those of fairseq and PyTorch: attention over the first dimension
# jax
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(params, batch):
    def loss(params):
        words = batch["words"][:-1]
        hidden = params["words"][words]
        query, key, value = (hidden @ params[name] for name in ("query", "key", "value"))
        chances = jax.nn.softmax(jnp.einsum("tbd,sbd->bts", query, key))
        hidden = hidden + jnp.einsum("bts,sbd->tbd", chances, value)
        chances = jax.nn.log_softmax(hidden @ params["out"])
        return -jnp.mean(jnp.take_along_axis(chances, batch["words"][1:, :, None], axis=2))

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


random = np.random.default_rng(0)
shapes = {"words": (11, 8), "query": (8, 8), "key": (8, 8), "value": (8, 8), "out": (8, 11)}
params = {name: jnp.asarray(random.normal(size=shape).astype("float32")) for name, shape in shapes.items()}
for i in range(14):
    params, value = step(params, {"words": random.integers(0, 11, size=(9, 4)).astype("int32")})
print(float(value).hex())
truth(steps=14, samples=56, parameters=sum(p.size for p in params.values()))
