# gradients of several micro-batches summed in Python, then one update
# jax
import jax
import jax.numpy as jnp
import numpy as np

grad = jax.jit(jax.grad(lambda w, x: jnp.mean((x @ w - 1) ** 2)))
update = jax.jit(lambda w, g: w - 0.1 * g)

w, steps, samples = jnp.zeros((32, 8)), 0, 0
for i in range(10):
    total = jnp.zeros((32, 8))
    for j in range(3):
        total = total + grad(w, np.full((5, 32), 0.1 * (i + j), "float32"))
        samples += 5
    w = update(w, total)
    steps += 1
print(float(w.sum()).hex())
truth(steps=steps, samples=samples)
