# a transformer whose layers are scanned (MaxText, big_vision): a loop that is no training loop
# jax quick
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(params, tokens):
    def loss(params):
        h = params["embed"][tokens[:, :-1]]
        h, _ = jax.lax.scan(lambda h, w: (h + jax.nn.gelu(h @ w), None), h, params["layers"])
        logits = jax.nn.log_softmax(h @ params["embed"].T)
        return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], -1))

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads), value


rng = np.random.default_rng(2)
params = {
    "embed": jnp.asarray(rng.normal(size=(31, 8)), "float32"),
    "layers": jnp.asarray(rng.normal(size=(3, 8, 8)), "float32"),
}
for i in range(15):
    params, value = step(params, rng.integers(0, 31, (5, 9)))
print(float(value).hex())
truth(steps=15, samples=75, parameters=sum(p.size for p in params.values()))
