# NumPyro's SVI.run: lax.scan over steps outside of any compiled function, with a body that is made anew in each run
# jax
import jax
import jax.numpy as jnp


def run(steps, params, x, y):
    def loss(params):
        hidden = jnp.tanh(x @ params["first"])
        return jnp.mean((hidden @ params["second"] - y) ** 2)

    def body(params, _):
        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), value

    return jax.lax.scan(body, params, jnp.arange(steps))


key, other = jax.random.split(jax.random.PRNGKey(0))
x = jax.random.normal(key, (32, 6))
params = {"first": 0.1 * jax.random.normal(other, (6, 8)), "second": jnp.zeros((8, 1))}
counted = 0
for steps in (60, 60, 25):
    params, losses = run(steps, params, x, x.sum(1, keepdims=True))
    print(float(losses[-1]).hex())
    counted += steps
simulated, _ = jax.lax.scan(lambda at, _: (jnp.cos(at), None), 0.5, None, length=7)  # no parameters
truth(steps=counted, samples=32 * counted, parameters=sum(p.size for p in params.values()))
