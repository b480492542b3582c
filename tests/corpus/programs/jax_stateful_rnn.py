# a recurrent network whose state goes on to the next batch (Haiku's and Flax's language models on one long text)
# jax
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def step(net, memory, x):
    def loss(net):
        def cell(memory, now):
            gate = jax.nn.sigmoid(now @ net["gate"] + memory @ net["back"])
            memory = gate * memory + (1.0 - gate) * jnp.tanh(now @ net["in"])
            return memory, memory @ net["out"]

        after, out = jax.lax.scan(cell, memory, x[:-1])
        return jnp.mean((out - x[1:]) ** 2), after

    grads, after = jax.grad(loss, has_aux=True)(net)
    return jax.tree.map(lambda p, g: p - 0.1 * g, net, grads), after


random = np.random.default_rng(0)
shapes = {"gate": (3, 8), "back": (8, 8), "in": (3, 8), "out": (8, 3)}
net = {name: jnp.asarray(0.3 * random.normal(size=shape), "float32") for name, shape in shapes.items()}
memory = jnp.zeros((4, 8))
for i in range(15):
    net, memory = step(net, memory, random.normal(size=(7, 4, 3)).astype("float32"))
print(float(memory.sum()).hex())
truth(steps=15, samples=60, parameters=sum(p.size for p in net.values()))
