# Flax nnx: model, optimizer and metrics are objects; a jitted step takes them apart and what it returns is put back
# jax
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
images, labels = rng.normal(size=(84, 12)).astype("float32"), rng.integers(0, 4, 84).astype("int32")


class Module:
    """What has arrays for attributes, also in others of its kind."""

    def split(self):
        return {name: one.split() if isinstance(one, Module) else one for name, one in sorted(vars(self).items())}

    def update(self, state):
        for name, value in state.items():
            one = getattr(self, name)
            if isinstance(one, Module):
                one.update(value)
            else:
                setattr(self, name, value)


class Linear(Module):
    def __init__(self, rows, columns):
        self.kernel, self.bias = jnp.ones((rows, columns)) * 0.1, jnp.zeros(columns)


class Model(Module):
    def __init__(self):
        self.one, self.two = Linear(12, 16), Linear(16, 4)


class Metrics(Module):
    def __init__(self):
        self.total, self.count = jnp.zeros(()), jnp.zeros((), jnp.int32)


def predict(state, x):
    hidden = jax.nn.tanh(x @ state["one"]["kernel"] + state["one"]["bias"])
    return hidden @ state["two"]["kernel"] + state["two"]["bias"]


@jax.jit
def train_step(model, metrics, image, label):
    def loss(model):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(predict(model, image)), label[:, None], 1))

    value, grads = jax.value_and_grad(loss)(model)
    metrics = {"total": metrics["total"] + value, "count": metrics["count"] + 1}
    return jax.tree.map(lambda p, g: p - 0.1 * g, model, grads), metrics


@jax.jit
def eval_step(model, metrics, image, label):
    right = jnp.mean(jnp.argmax(predict(model, image), 1) == label)
    return {"total": metrics["total"] + right, "count": metrics["count"] + 1}


model, metrics = Model(), Metrics()
steps = samples = 0
for epoch in range(3):
    for start in range(0, 84, 16):
        image, label = images[start : start + 16], labels[start : start + 16]
        state, found = train_step(model.split(), metrics.split(), image, label)
        model.update(state)
        metrics.update(found)
        steps, samples = steps + 1, samples + len(image)
    scores = Metrics()
    for start in range(0, 84, 42):
        scores.update(eval_step(model.split(), scores.split(), images[start : start + 42], labels[start : start + 42]))
    print(float(metrics.total).hex(), float(scores.total / scores.count).hex())
truth(steps=steps, samples=samples, parameters=12 * 16 + 16 + 16 * 4 + 4)
