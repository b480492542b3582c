"""Training loops that lie inside one compiled call: `lax.scan` or `fori_loop` over steps or epochs.

Such a loop carries the state of the training: what comes into the function, is changed by each turn, and goes out
again. A loop over layers or time carries activations, and one that accumulates gradients begins with zeros. Where its
end is accepted at random, as the leapfrogs of Hamiltonian Monte Carlo are, all its turns together are one step.
"""

from __future__ import annotations

from typing import Any

from . import jax_parameters, jax_traits, jaxprs

_CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_SAME = ("convert_element_type", "copy", "reshape", "sharding_constraint", "device_put", "squeeze")
_CHOICES = ("cond", "select_n")
_LOOPS = ("scan", "while")
_RANDOM = "random_bits"
_SUMS = ("cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum")
_SLICES = ("slice", "dynamic_slice")
_STATE_SHARE = 0.5  # of the bytes of a function's state: what carries that much is a training loop
_MAX_EQUATIONS = 200_000


class Turns:
    """What one call of a function does."""

    def __init__(
        self,
        steps: int | None,
        rows: int | None,
        loops: bool,
        scanned: frozenset[Any],
        products: tuple[jax_traits.Products, bool] | None = None,
        handed_on: float = 0.0,
        parameters: jax_parameters.Parameters | None = None,
        trains: bool = False,
        others: float = 0.0,
    ) -> None:
        self.steps = steps  # 1 without a training loop; None: a loop of unknown length
        self.rows = rows  # consumed by such a loop; None: unknown, or no such loop
        self.loops = loops  # whether there is any loop at all
        self.scanned = scanned  # shapes of arguments whose first dimension loops go along
        self.handed_on = handed_on  # bytes of floating point numbers that come out as they went in
        self.trains = trains  # whether there is a training loop, also one of a single turn or of unknown length
        self.others = others  # bytes of the arguments that other turns of it take than the first
        self.parameters = parameters  # that it trains; None where they can't be told
        self.products, whole = products or ({}, False)  # FLOPs of its matrix products by arithmetic
        self.flops = sum(self.products.values()) if whole else None  # None: there are others


UNKNOWN = Turns(None, None, True, frozenset())
ONCE = Turns(1, None, False, frozenset())


def find(closed: Any) -> Turns:
    """Look for training loops in a jaxpr. Raises whatever an unknown form of it leads to."""
    jaxpr = jaxprs.opened(closed)
    outputs: dict[Any, int] = {}
    for var in jaxpr.outvars:
        kind = jaxprs.kind(var)
        outputs[kind] = outputs.get(kind, 0) + 1
    state: dict[Any, float] = {}
    for var in jaxpr.invars:
        kind = jaxprs.kind(var)
        if _is_float(var) and outputs.get(kind, 0) > 0:
            outputs[kind] -= 1
            state[var] = _bytes(var)
    walk = _Walk(state)
    steps, rows = walk.steps(jaxpr, {var: var for var in jaxpr.invars})
    known = None if walk.unknown else steps or 1
    given = set(jaxpr.invars)
    handed_on = sum(_bytes(var) for var in jaxpr.outvars if _is_float(var) and _hashable(var) in given)
    try:
        trained = jax_parameters.trained(walk.body or jaxpr)
        if walk.body is not None and jax_parameters.trained(jaxpr, outside=True) is not None:
            trained = None  # the loop does not train all of them
    except Exception:
        trained = None  # steps are known all the same
    if walk.body is not None and (walk.apart or ((trained is None or walk.apart_inside) and _may_train(walk.body))):
        known = None
    if trained is not None and _sometimes(walk.body or jaxpr, trained):
        known = None
    if walk.accepts or (trained is not None and not trained.whole):
        trained = None  # steps are what they are
    products, trains = jax_traits.products(jaxpr), walk.unknown or walk.body is not None
    return Turns(known, rows, walk.loops, frozenset(walk.scanned), products, handed_on, trained, trains, walk.others)


def _sometimes(body: Any, trained: jax_parameters.Parameters) -> bool:
    try:
        return jax_parameters.sometimes(body, trained)
    except Exception:
        return True


def _may_train(body: Any) -> bool:
    """Whether a loop inside the body of a training loop carries some of what that carries: beside the state of
    environments, parameters are little, and the steps may be those of the inner loop. They are not where the body
    trains more than that outside of it: then the loop remembers, as a recurrent network, or averages statistics."""
    inner = _Walk({var: _bytes(var) for var in body.invars if _is_float(var)}, least=1.0)
    inner.steps(body, {var: var for var in body.invars})
    carried = frozenset().union(*inner.carried)
    if not carried:
        return False
    try:
        outside = jax_parameters.trained(body, without=carried)
    except Exception:
        return True
    return outside is None or outside.bytes < sum(map(_bytes, carried))


def is_scan(closed: Any) -> bool:
    """Whether it is a `lax.scan` and nothing else."""
    equations = getattr(jaxprs.opened(closed), "eqns", ())
    return len(equations) == 1 and equations[0].primitive.name == "scan"


class _Walk:
    def __init__(self, state: dict[Any, float], least: float | None = None) -> None:
        self._state = state
        self._needed = _STATE_SHARE * sum(state.values()) if least is None else least
        self.scanned: set[Any] = set()
        self._along: set[Any] = set()  # what they go along by its first dimension: arguments, and parts of those
        self._parts: dict[Any, set[tuple[int, int]]] = {}  # of arguments, along the first dimension
        self.others = 0.0
        self._left = _MAX_EQUATIONS
        self.unknown = False
        self.loops = False
        self.apart = False  # whether loops carry parts of the state that have nothing in common
        self.apart_inside = False  # the same of loops in the body of the training loop
        self.carried: list[set[Any]] = []  # parts of the state that loops carry, but for single numbers
        self.accepts = False  # whether the end of a loop is accepted at random: it carries a proposal, not parameters
        self._undecided = False  # the same, and the loop is not yet found that it belongs to
        self._random: set[Any] = set()  # what is made of random numbers, but by loops
        self._ends: dict[Any, Any] = {}  # what a training loop has made → the state that it began with, else None
        self.body: Any = None  # of the training loop found last: one step

    def steps(self, jaxpr: Any, origin: dict[Any, Any]) -> tuple[int, int | None]:
        """(steps of all training loops, rows that they consume); 0 steps without any."""
        total, rows, known = 0, 0, True
        before = self.body, self.apart, len(self.carried)
        for equation in jaxpr.eqns:
            self._left -= 1
            if self._left <= 0:
                self.unknown = True
                return 0, None
            name = equation.primitive.name
            given = map(_hashable, equation.invars)
            if name == _RANDOM or (name not in _LOOPS and not self._random.isdisjoint(given)):
                self._random.update(equation.outvars)
            if name in _SAME:
                source = origin.get(_hashable(equation.invars[0]))
                if source is not None:
                    origin[equation.outvars[0]] = source
                continue
            if name == "scan":
                found, taken = self._scan(equation, origin)
            elif name == "while":
                found, taken = self._while(equation, origin), None
            else:
                found, taken = self._inside(equation, origin)
                self._look_along(equation, origin)
                self._lead_on(equation, origin)
                self._undecided = self._undecided or (name in _CHOICES and self._accepts(equation, origin))
                if self._undecided and total:  # else the loop is outside of the function that decides
                    total, rows, known, self.accepts, self._undecided = 0, 0, True, True, False
                    self.body, self.apart = before[:2]
                    del self.carried[before[2] :]
                    continue
            if found:
                total += found
                if taken is None:
                    known = False
                else:
                    rows += taken
        return total, rows if total and known else None

    def _goes_along(self, source: Any, var: Any) -> None:
        """Something goes along the first dimension of a value that has that of an argument, if it is one."""
        if source is not None and source not in self._state:
            self.scanned.add(tuple(source.aval.shape))
            if jaxprs.shape(var)[:1] == jaxprs.shape(source)[:1]:
                self._along.add(source)

    def _look_along(self, equation: Any, origin: dict[Any, Any]) -> None:
        """The first dimension of an argument is time where its values are added up along it, compared with those one
        moment later, or multiplied with each other for each row of another dimension, as attention does."""
        name, params = equation.primitive.name, equation.params
        given = [(origin.get(_hashable(var)), var) for var in equation.invars]
        given = [(source, var) for source, var in given if source is not None and source not in self._state]
        if name in _SUMS and given and params["axis"] == 0:
            self._goes_along(*given[0])
        elif name == "slice" and given:
            part = params["start_indices"][0], params["limit_indices"][0]
            parts = self._parts.setdefault(given[0][0], set())
            if any(low < part[0] < high < part[1] or part[0] < low < part[1] < high for low, high in parts):
                self._goes_along(*given[0])
            parts.add(part)
        elif name == "dot_general" and len(given) == 2:
            contracted, batched = params["dimension_numbers"]
            if batched[0] and not any(0 in axes for axes in (*contracted, *batched)):
                for source, var in given:
                    self._goes_along(source, var)

    def _lead_on(self, equation: Any, origin: dict[Any, Any]) -> None:
        """What is computed from an argument along its first dimension, as words from their numbers in a text that has
        time first: a loop along it goes along the argument."""
        name = equation.primitive.name
        if name == "transpose" and next(iter(equation.params["permutation"]), 0) != 0:
            return
        for var in equation.invars:
            source, shape = origin.get(_hashable(var)), jaxprs.shape(var)
            if source is None or source in self._state or not shape:
                continue
            for out in equation.outvars:
                if name in _SLICES or jaxprs.shape(out)[:1] == shape[:1]:
                    origin.setdefault(out, source)

    def _inside(self, equation: Any, origin: dict[Any, Any]) -> tuple[int, int | None]:
        for key in _CALLS:
            inner = equation.params.get(key)
            if inner is None:
                continue
            jaxpr = jaxprs.opened(inner)
            offset = len(equation.invars) - len(jaxpr.invars)
            if offset < 0:
                return 0, None
            within = _renamed(equation.invars[offset:], jaxpr.invars, origin)
            for outer, var in zip(equation.invars[offset:], jaxpr.invars):
                self._ends[var] = self._ends.get(_hashable(outer))
                if _hashable(outer) in self._random:
                    self._random.add(var)
            found = self.steps(jaxpr, within)
            if equation.primitive.name == "shard_map":
                found = found[0], None  # rows of one chip, be they the same on the others or not
            for outer, var in zip(equation.outvars, jaxpr.outvars):
                source = within.get(_hashable(var))
                if source is not None:
                    origin[outer] = source
                self._ends[outer] = self._ends.get(_hashable(var))
                if _hashable(var) in self._random:
                    self._random.add(outer)
            return found
        for branch in map(jaxprs.opened, equation.params.get("branches", ())):
            found, _ = self.steps(branch, _renamed(equation.invars[1:], branch.invars, origin))
            self.unknown = self.unknown or found > 0
        return 0, None

    def _accepts(self, equation: Any, origin: dict[Any, Any]) -> bool:
        """Whether it takes the end of a training loop, or else what that began with, at random. What a check throws
        away was trained."""
        if _hashable(equation.invars[0]) not in self._random:
            return False
        given = [_hashable(var) for var in equation.invars[1:]]
        return not {self._ends.get(var) for var in given}.isdisjoint({origin.get(var) for var in given} - {None})

    def _scan(self, equation: Any, origin: dict[Any, Any]) -> tuple[int, int | None]:
        self.loops = True
        length = int(equation.params["length"])
        body, consts, carries = jaxprs.scan_parts(equation)
        initial = equation.invars[consts : consts + carries]
        for var in equation.invars[consts + carries :]:
            self._goes_along(origin.get(_hashable(var)), var)
        if not self._trains(initial, body.invars[consts : consts + carries], body.outvars[:carries], origin):
            return 0, None
        self._ends.update(_renamed(initial, equation.outvars[:carries], origin))
        inner = _renamed(initial, body.invars[consts : consts + carries], origin)
        parts = body.invars[consts + carries :]
        inner.update(zip(parts, parts))
        apart, outer = self.apart, len(self.carried)
        steps, _ = self.steps(body, inner)
        if steps:
            return length * steps, None
        self.apart, self.apart_inside = apart, self.apart and not apart
        del self.carried[outer:]
        self.body = body
        scanned = {origin.get(_hashable(var)) for var in equation.invars[consts + carries :]} - {None, *self._state}
        self.others += sum(_bytes(var) for var in scanned) * max(0, length - 1) / max(1, length)
        if not self._along.isdisjoint(parts):
            return length, None  # micro-batches, or moments in time
        leading = {
            tuple(var.aval.shape)[1]
            for var in equation.invars[consts + carries :]
            if len(var.aval.shape) >= 2 and not _is_key(var)
        }
        return length, length * leading.pop() if len(leading) == 1 else None

    def _while(self, equation: Any, origin: dict[Any, Any]) -> int:
        self.loops = True
        body = jaxprs.opened(equation.params["body_jaxpr"])
        consts = equation.params["body_nconsts"]
        initial = equation.invars[equation.params["cond_nconsts"] + consts :]
        if self._trains(initial, body.invars[consts:], body.outvars, origin):
            self.unknown = True
        return 0

    def _trains(self, initial: Any, inside: Any, outside: Any, origin: dict[Any, Any]) -> bool:
        sources = [origin.get(_hashable(one)) for one in initial]
        changed = [one for one, begin, end in zip(sources, inside, outside) if begin is not end and one in self._state]
        arrays = {one for one in changed if jaxprs.shape(one)}  # a single number is a sum or a count
        # As a program that collects experience in one loop and learns in another: which one has the parameters?
        self.apart = self.apart or any(arrays and before.isdisjoint(arrays) for before in self.carried)
        if arrays:
            self.carried.append(arrays)
        carried = sum(_bytes(one) for one in changed)  # of all chips, as is what is needed
        return self._needed > 0 and carried >= self._needed


def _renamed(outer: Any, inner: Any, origin: dict[Any, Any]) -> dict[Any, Any]:
    found = {}
    for before, after in zip(outer, inner):
        source = origin.get(_hashable(before))
        if source is not None:
            found[after] = source
    return found


def _hashable(var: Any) -> Any:
    return None if hasattr(var, "val") else var  # a literal


def _is_float(var: Any) -> bool:
    return "float" in str(getattr(var.aval, "dtype", "")) or "complex" in str(getattr(var.aval, "dtype", ""))


def _is_key(var: Any) -> bool:
    name, shape = str(var.aval.dtype), tuple(var.aval.shape)
    return name.startswith("key<") or (name == "uint32" and shape[-1:] in ((2,), (4,)))


def _bytes(var: Any) -> float:
    return float(getattr(getattr(var.aval, "dtype", None), "itemsize", 0) or 0) * jaxprs.elements(var)
