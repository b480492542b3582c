# jax/examples/mnist_classifier.py
# jax quick
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(0)
images, labels = rng.normal(size=(100, 12)).astype("float32"), np.eye(4, dtype="float32")[rng.integers(0, 4, 100)]


def predict(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss(params, batch):
    x, y = batch
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(predict(params, x)) * y, axis=1))


@jax.jit
def update(params, batch):
    grads = jax.grad(loss)(params, batch)
    return [(w - 0.1 * dw, b - 0.1 * db) for (w, b), (dw, db) in zip(params, grads)]


@jax.jit
def accuracy(params, batch):
    x, y = batch
    return jnp.mean(jnp.argmax(predict(params, x), 1) == jnp.argmax(y, 1))


params = [(jnp.ones((12, 16)) * 0.1, jnp.zeros(16)), (jnp.ones((16, 4)) * 0.1, jnp.zeros(4))]
steps = samples = 0
for epoch in range(4):
    order = rng.permutation(100)
    for start in range(0, 100, 16):
        chosen = order[start : start + 16]
        params = update(params, (images[chosen], labels[chosen]))
        steps, samples = steps + 1, samples + len(chosen)
    print(epoch, float(accuracy(params, (images, labels))).hex())
print(float(loss(params, (images, labels))).hex())
truth(steps=steps, samples=samples, parameters=sum(w.size + b.size for w, b in params))
