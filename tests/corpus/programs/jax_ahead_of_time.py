# compiled ahead of time, and then called
# jax
import jax
import jax.numpy as jnp
import numpy as np

step = jax.jit(lambda w, x: (w - 0.1 * jax.grad(lambda w: jnp.mean(jax.nn.relu(x @ w)))(w), jnp.sum(x)))
w = jnp.ones((4, 4))
compiled = step.lower(w, jax.ShapeDtypeStruct((8, 4), "float32")).compile()
for i in range(16):
    w, _ = compiled(w, np.full((8, 4), i / 16, "float32"))
print(float(w.sum()).hex())
truth(steps=16, samples=128, parameters=w.size)
