# CLIP in JAX: two towers, and a temperature that is learned
# jax
import jax
import jax.numpy as jnp
import numpy as np


def tower(net, x):
    out = jnp.tanh(x @ net["w"] + net["b"]) @ net["head"]
    return out / jnp.linalg.norm(out, axis=1, keepdims=True)


@jax.jit
def step(params, batch):
    def loss(params):
        image, text = tower(params["image"], batch["image"]), tower(params["text"], batch["text"])
        logits = jnp.exp(params["heat"]) * image @ text.T
        along, across = jax.nn.log_softmax(logits), jax.nn.log_softmax(logits.T)
        return -jnp.mean(jnp.diagonal(along) + jnp.diagonal(across))

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def network(inputs):
    return {"w": jnp.ones((inputs, 8)) * 0.1, "b": jnp.zeros(8), "head": jnp.eye(8)[:, :4]}


params = {"image": network(6), "text": network(5), "heat": jnp.zeros(())}
random = np.random.default_rng(0)
for i in range(14):
    image, text = random.normal(size=(9, 6)).astype("float32"), random.normal(size=(9, 5)).astype("float32")
    params, value = step(params, {"image": image, "text": text})
print(float(value).hex())
truth(steps=14, samples=126, parameters=sum(p.size for p in jax.tree.leaves(params)))
