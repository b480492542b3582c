"""The training loops of a JAX call: how many steps they make, and of how many samples, as far as that is clear."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax")
from rightpool_agent import jax_loops, jax_parameters, jaxprs  # type: ignore[import-not-found]  # noqa: E402

jnp = jax.numpy
map_ = jax.tree_util.tree_map
STEPS, ROWS, MOMENTS = 7, 5, 10
NET = {"in": jnp.ones((3, 4 * 8)), "back": jnp.ones((8, 4 * 8)), "out": jnp.ones((8, 1))}
CELL = jnp.zeros((ROWS, 8)), jnp.zeros((ROWS, 8))
FLAT = {"w": jnp.ones((3, 8)), "v": jnp.ones((8, 1))}


def found(function: Any, *arguments: Any) -> jax_loops.Turns:
    return jax_loops.find(jax.make_jaxpr(function)(*arguments))


def descend(net: Any, grads: Any) -> Any:
    return map_(lambda p, g: p - 0.1 * g, net, grads)


def turn(net: Any, cell: Any, now: Any) -> Any:
    hidden, memory = cell
    gate, forget, out, new = jnp.split(now @ net["in"] + hidden @ net["back"], 4, -1)
    memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(gate) * jnp.tanh(new)
    return jax.nn.sigmoid(out) * jnp.tanh(memory), memory


def through_time(nets: Any, cells: Any, chunks: Any) -> Any:
    """Layers of an LSTM one after the other, whose state goes on to the next step."""

    def loss_of(nets: Any, cells: Any, seen: Any) -> Any:
        after = []
        for net, cell in zip(nets, cells, strict=True):

            def step(cell: Any, now: Any, net: Any = net) -> Any:
                cell = turn(net, cell, now)
                return cell, cell[0]

            cell, seen = jax.lax.scan(step, cell, seen)
            after.append(cell)
            seen = seen @ net["out"] @ jnp.ones((1, 3))
        return (seen**2).mean(), after

    def step(carry: Any, chunk: Any) -> Any:
        nets, cells = carry
        (value, cells), grads = jax.value_and_grad(loss_of, has_aux=True)(nets, cells, chunk)
        return (descend(nets, grads), cells), value

    return jax.lax.scan(step, (nets, cells), chunks)


def flat_loss(net: Any, x: Any) -> Any:
    return ((jnp.tanh(x @ net["w"]) @ net["v"]) ** 2).mean()


def with_statistics(net: Any, mean: Any, batches: Any) -> Any:
    """Gradients of several batches are added up, and a normalization keeps its mean on the way."""

    def step(carry: Any, parts: Any) -> Any:
        net, mean = carry

        def add(carry: Any, part: Any) -> Any:
            grads, mean = carry
            more = jax.grad(flat_loss)(net, part - mean)
            return (map_(jnp.add, grads, more), 0.9 * mean + 0.1 * part.mean(0)), None

        (grads, mean), _ = jax.lax.scan(add, (map_(jnp.zeros_like, net), mean), parts)
        return (descend(net, grads), mean), None

    return jax.lax.scan(step, (net, mean), batches)


def with_evaluation(net: Any, total: Any, batches: Any) -> Any:
    """An epoch, and an evaluation that adds to a sum which the program keeps."""
    net, _ = jax.lax.scan(lambda net, x: (descend(net, jax.grad(flat_loss)(net, x)), None), net, batches)
    total, _ = jax.lax.scan(lambda total, x: (total + flat_loss(net, x), None), total, batches[:2])
    return net, total


def with_experience(net: Any, spread: Any, world: Any, seen: Any, moves: Any) -> Any:
    """A world is moved and kept in mind, and the net learns from that in a loop. It sees all by its spread so far."""

    def step(carry: Any, move: Any) -> Any:
        net, spread, world, seen = carry

        def learn(net: Any, x: Any) -> Any:
            return descend(net, jax.grad(flat_loss)(net, x / spread)), None

        world = 0.9 * world + 0.1 * jnp.tanh((world / spread) @ net["w"]) @ net["v"] + move
        spread = 0.9 * spread + 0.1 * world.std(0)
        seen = jax.lax.dynamic_update_slice(jnp.roll(seen, -4, 0), world, (36, 0))
        net, _ = jax.lax.scan(learn, net, seen[::4].reshape(2, ROWS, 3))
        return (net, spread, world, seen), None

    return jax.lax.scan(step, (net, spread, world, seen), moves)


def learns_now_and_then(net: Any, world: Any, moves: Any) -> Any:
    """A net moves a world, and learns from it in every third turn."""

    def step(carry: Any, move: Any) -> Any:
        net, world, count = carry
        world = 0.9 * world + 0.1 * jnp.tanh(world @ net["w"]) @ net["v"] + move
        now = count % 3 == 2
        net = jax.lax.cond(now, lambda: descend(net, jax.grad(flat_loss)(net, world)), lambda: net)
        return (net, world, count + 1), None

    return jax.lax.scan(step, (net, world, 0), moves)


def learns_in_a_loop_now_and_then(net: Any, batches: Any) -> Any:
    def learn(net: Any) -> Any:
        return jax.lax.scan(lambda net, x: (descend(net, jax.grad(flat_loss)(net, x)), None), net, batches)[0]

    def step(carry: Any, _: Any) -> Any:
        net, count = carry
        return (jax.lax.cond(count % 3 == 2, learn, lambda net: net, net), count + 1), None

    return jax.lax.scan(step, (net, 0), None, STEPS)


def applies_now_and_then(net: Any, batches: Any) -> Any:
    """Gradients are made in each turn. What applies them multiplies, as Muon does."""

    def step(net: Any, batch: Any) -> Any:
        grads = jax.grad(flat_loss)(net, batch)
        finite = jnp.isfinite(grads["w"]).all()

        def apply(net: Any, grads: Any) -> Any:
            return descend(net, map_(lambda g: (g @ g.T) @ g, grads))

        return jax.lax.cond(finite, apply, lambda net, _: net, net, grads), None

    return jax.lax.scan(step, net, batches)


def learns_more_now_and_then(net: Any, batches: Any) -> Any:
    """A penalty of its own in every third turn."""

    def step(carry: Any, batch: Any) -> Any:
        net, count = carry
        net = descend(net, jax.grad(flat_loss)(net, batch))
        more = lambda: descend(net, jax.grad(flat_loss)(net, 2 * batch))  # noqa: E731
        return (jax.lax.cond(count % 3 == 2, more, lambda: net), count + 1), None

    return jax.lax.scan(step, (net, 0), batches)


def learns_from_a_critic_now_and_then(nets: Any, batches: Any) -> Any:
    """A critic learns in each turn, and a larger generator in some."""

    def step(carry: Any, batch: Any) -> Any:
        (large, critic), count = carry
        gap = lambda critic: flat_loss(critic, batch[:, :3]) - flat_loss(critic, batch @ large)  # noqa: E731
        critic = descend(critic, jax.grad(gap)(critic))
        learn = lambda: large - jax.grad(lambda large: flat_loss(critic, batch @ large))(large)  # noqa: E731
        large = jax.lax.cond(count % 3 == 2, learn, lambda: large)
        return ((large, critic), count + 1), None

    return jax.lax.scan(step, (nets, 0), batches)


def leaves_layers_out(nets: Any, batches: Any) -> Any:
    """Each layer is skipped by chance."""

    def loss_of(nets: Any, seen: Any, keys: Any) -> Any:
        for net, key in zip(nets, keys, strict=True):
            through = lambda x, net: x + jnp.tanh(x @ net["w"]) @ net["v"]  # noqa: E731
            seen = jax.lax.cond(jax.random.bernoulli(key), through, lambda x, net: x, seen, net)
        return (seen**2).mean()

    def step(carry: Any, batch: Any) -> Any:
        nets, key = carry
        key, *keys = jax.random.split(key, 1 + len(nets))
        return (descend(nets, jax.grad(loss_of)(nets, batch, keys)), key), None

    return jax.lax.scan(step, (nets, jax.random.PRNGKey(0)), batches)


def learns_in_branches_of_branches(depth: int) -> Any:
    """Each branch learns, and has two others in it."""

    def learn(net: Any, batch: Any, left: int) -> Any:
        net = descend(net, jax.grad(flat_loss)(net, batch))
        if not left:
            return net
        deeper = lambda net: learn(net, batch, left - 1)  # noqa: E731
        return jax.lax.cond(net["w"].sum() > left, deeper, lambda net: deeper(descend(net, net)), net)

    return lambda net, batches: jax.lax.scan(lambda net, batch: (learn(net, batch, depth), None), net, batches)


class Counted(jaxprs.Budget):  # type: ignore[misc]
    """A budget that keeps all that there are."""

    made: list[Counted] = []

    def __init__(self, equations: int) -> None:
        super().__init__(equations)
        self.equations = equations
        self.made.append(self)

    @property
    def taken(self) -> int:
        return int(self.equations - self.left)


@pytest.fixture
def budgets(monkeypatch: pytest.MonkeyPatch) -> list[Counted]:
    monkeypatch.setattr(Counted, "made", [])
    monkeypatch.setattr(jaxprs, "Budget", Counted)
    return Counted.made


@pytest.mark.parametrize("layers", [1, 2])
def test_what_a_recurrent_network_remembers_hides_no_steps(layers: int) -> None:
    assert found(through_time, [NET] * layers, [CELL] * layers, jnp.ones((STEPS, MOMENTS, ROWS, 3))).steps == STEPS


def test_statistics_that_a_loop_inside_of_a_step_keeps_hide_no_steps() -> None:
    assert found(with_statistics, FLAT, jnp.zeros(3), jnp.ones((STEPS, 2, ROWS, 3))).steps == STEPS


def test_a_sum_that_an_evaluation_in_the_same_call_adds_to_hides_no_steps() -> None:
    turns = found(with_evaluation, FLAT, jnp.zeros(()), jnp.ones((STEPS, ROWS, 3)))
    assert (turns.steps, turns.rows) == (STEPS, STEPS * ROWS)


def test_a_loop_inside_that_learns_hides_the_steps_whatever_statistics_are_kept_beside_it() -> None:
    arguments = FLAT, jnp.ones(3), jnp.ones((4, 3)), jnp.ones((40, 3)), jnp.ones((STEPS, 1, 3))
    assert found(with_experience, *arguments).steps is None


@pytest.mark.parametrize(
    ("function", "state", "batches"),
    [
        (through_time, ([NET], [CELL]), (STEPS, MOMENTS, ROWS, 3)),
        (with_statistics, (FLAT, jnp.zeros(3)), (STEPS, 2, ROWS, 3)),
    ],
)
def test_moments_and_parts_of_a_batch_are_no_samples(function: Any, state: Any, batches: tuple[int, ...]) -> None:
    """A loop inside of a step goes along them."""
    assert found(function, *state, jnp.ones(batches)).rows is None


def test_steps_of_a_loop_that_learns_now_and_then_are_not_known() -> None:
    arguments = FLAT, jnp.ones((4, 3)), jnp.ones((STEPS, 1, 3))
    assert found(learns_now_and_then, *arguments).steps is None
    assert found(learns_in_a_loop_now_and_then, FLAT, jnp.ones((2, ROWS, 3))).steps is None


@pytest.mark.parametrize("function", [applies_now_and_then, learns_more_now_and_then])
def test_a_loop_that_learns_in_each_turn_and_more_in_some_makes_a_step_in_each(function: Any) -> None:
    assert found(function, FLAT, jnp.ones((STEPS, ROWS, 3))).steps == STEPS


def test_a_loop_in_which_one_of_two_networks_learns_in_each_turn_makes_a_step_in_each() -> None:
    nets = jnp.ones((200, 3)), {"w": jnp.ones((3, 8)), "v": jnp.ones((8, 1))}
    assert found(learns_from_a_critic_now_and_then, nets, jnp.ones((STEPS, ROWS, 200))).steps == STEPS


def test_a_loop_whose_layers_are_left_out_by_chance_makes_a_step_in_each_turn() -> None:
    assert found(leaves_layers_out, [FLAT, FLAT], jnp.ones((STEPS, ROWS, 3))).steps == STEPS


def test_many_branches_are_little_work(budgets: list[Counted]) -> None:
    """Each is looked at once more, beside the whole of the step."""
    assert found(leaves_layers_out, [FLAT] * 48, jnp.ones((STEPS, ROWS, 3))).steps == STEPS
    whole, branches = (
        next(one.taken for one in budgets if one.equations == most)
        for most in (jax_parameters._MAX_EQUATIONS, jax_parameters._MAX_IN_BRANCHES)
    )
    assert whole < branches < 4 * whole


def test_what_is_in_no_branch_is_not_counted_as_if_it_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax_parameters, "_MAX_IN_BRANCHES", 1)
    assert found(through_time, [NET], [CELL], jnp.ones((STEPS, MOMENTS, ROWS, 3))).steps == STEPS


@pytest.mark.parametrize("depth", [1, 2])
def test_branches_of_branches_that_all_learn_make_a_step_in_each_turn(depth: int) -> None:
    assert found(learns_in_branches_of_branches(depth), FLAT, jnp.ones((STEPS, ROWS, 3))).steps == STEPS


def test_branches_that_are_too_much_to_look_at_hide_the_steps(budgets: list[Counted]) -> None:
    assert found(learns_in_branches_of_branches(7), FLAT, jnp.ones((STEPS, ROWS, 3))).steps is None
    spent = [one for one in budgets if one.equations == jax_parameters._MAX_IN_BRANCHES]
    assert [one.taken for one in spent] == [jax_parameters._MAX_IN_BRANCHES]


def test_a_batch_that_is_divided_in_the_step_counts() -> None:
    def step(net: Any, batch: Any) -> Any:
        def add(grads: Any, part: Any) -> Any:
            return map_(jnp.add, grads, jax.grad(flat_loss)(net, part)), None

        grads, _ = jax.lax.scan(add, map_(jnp.zeros_like, net), batch.reshape(2, ROWS, 3))
        return descend(net, grads), None

    batches = jnp.ones((STEPS, 2 * ROWS, 3))
    assert found(lambda net, batches: jax.lax.scan(step, net, batches), FLAT, batches).rows == STEPS * 2 * ROWS


@pytest.mark.parametrize("chosen", [False, True], ids=["branch", "choice"])
@pytest.mark.parametrize("at_random", [False, True], ids=["checked", "at-random"])
def test_a_loop_whose_end_is_accepted_at_random_is_one_step(chosen: bool, at_random: bool) -> None:
    """Leapfrogs of Hamiltonian Monte Carlo. What a check throws away is trained all the same."""

    def sample(net: Any, x: Any) -> Any:
        after = jax.lax.fori_loop(0, 4, lambda _, net: descend(net, jax.grad(flat_loss)(net, x)), net)
        better = flat_loss(after, x) - flat_loss(net, x) < 0.0
        if at_random:
            chance = jnp.exp(flat_loss(net, x) - flat_loss(after, x))
            better = jax.random.bernoulli(jax.random.key(jnp.int32(x[0, 0])), chance)
        if chosen:
            return map_(lambda old, new: jnp.where(better, new, old), net, after), None
        return jax.lax.cond(better, lambda: after, lambda: net), None

    batches = jnp.ones((STEPS, ROWS, 3))
    alone, many = found(sample, FLAT, batches[0]), found(lambda net, x: jax.lax.scan(sample, net, x), FLAT, batches)
    assert (alone.steps, many.steps) == ((1, STEPS) if at_random else (4, 4 * STEPS))
    assert not at_random or (alone.parameters, many.parameters) == (None, None)


def test_steps_that_are_each_accepted_or_not_count_all() -> None:
    def step(net: Any, x: Any) -> Any:
        after = descend(net, jax.grad(flat_loss)(net, x))
        return map_(lambda old, new: jnp.where(jnp.isfinite(new).all(), new, old), net, after), None

    assert found(lambda net, x: jax.lax.scan(step, net, x), FLAT, jnp.ones((STEPS, ROWS, 3))).steps == STEPS


def attends(hidden: Any) -> Any:
    chances = jax.nn.softmax(jnp.einsum("tbd,sbd->bts", hidden, hidden))
    return jnp.einsum("bts,sbd->tbd", chances, hidden)


@pytest.mark.parametrize(
    ("along", "expected"),
    [
        (attends, True),
        (lambda hidden: hidden[1:] - 0.9 * hidden[:-1], True),
        (lambda hidden: jnp.cumsum(hidden, axis=0), True),
        (lambda hidden: jnp.swapaxes(attends(jnp.swapaxes(hidden, 0, 1)), 0, 1), False),
        (lambda hidden: hidden[:4].sum() - hidden[4:], False),
        (lambda hidden: jnp.cumsum(hidden, axis=1), False),
        (lambda hidden: jnp.einsum("rmd,smd->rs", hidden, hidden), False),
        (lambda hidden: jnp.einsum("rmd,mde->rme", hidden, jnp.ones((ROWS, 8, 8)) * hidden.sum()), False),
    ],
    ids=["attention", "differences", "sums", "attention in a row", "parts", "sums in a row", "contrast", "experts"],
)
def test_a_first_dimension_that_is_time_is_told_without_a_loop(along: Any, expected: bool) -> None:
    def step(net: Any, x: Any) -> Any:
        return descend(net, jax.grad(lambda net: (along(jnp.tanh(x @ net["w"])) ** 2).mean())(net))

    assert ((MOMENTS, ROWS, 3) in found(step, FLAT, jnp.ones((MOMENTS, ROWS, 3))).scanned) is expected


def test_what_learns_now_and_then_with_a_temperature_hides_its_steps_as_well() -> None:
    def step(state: Any, x: Any) -> Any:
        def loss(state: Any) -> Any:
            return (jnp.exp(state["heat"]) * jnp.tanh(x @ state["w"]) @ state["v"]).mean() ** 2 - state["heat"]

        return jax.lax.cond(x[0, 0] > 0, lambda: descend(state, jax.grad(loss)(state)), lambda: state), None

    state = {**FLAT, "heat": jnp.zeros(())}
    turns = found(lambda state, x: jax.lax.scan(step, state, x), state, jnp.ones((STEPS, ROWS, 3)))
    assert (turns.steps, turns.parameters) == (None, None)
