"""The parameters that a JAX step trains, told apart from the optimizer's state by what depends on what in its jaxpr.

A program passes parameters, momentum, averages and statistics to its step in any form, and all of them come back
changed. What tells parameters apart: gradients are computed with them, so that the new values of many other arrays
depend on each of them. Momentum changes what it belongs to and nothing else, as do averaged parameters and statistics
of a normalization. A target network is used for gradients as well, but its new values are made from new parameters,
element by element, and not the other way round.

Nothing is told where that is not clear: where a state of another kind (of a recurrent network, of an environment)
comes back, and where gradients are made in another function.
"""

from __future__ import annotations

from typing import Any

from . import jaxprs

_MAX_EQUATIONS = 50_000
_MAX_ROUNDS = 8  # through the body of a loop, until what depends on what is known
_MANY = 4  # arrays that an optimizer's state may change beside its own
_SHARE = 0.5  # or this part of what the array changes that changes most

# Primitives whose results do not take the place of what goes in, element by element, though shapes may be the same.
_MIXING = (
    "argsort",
    "concatenate",
    "conv_general_dilated",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "dot_general",
    "dynamic_slice",
    "dynamic_update_slice",
    "fft",
    "gather",
    "pad",
    "ragged_dot",
    "rev",
    "scatter",
    "scatter-add",
    "select_and_scatter_add",
    "slice",
    "sort",
    "transpose",
    "triangular_solve",
)
_CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_REFERENCES = ("get", "swap", "addupdate", "ref_get", "ref_swap", "ref_addupdate")

# What is known of a value, as sets of arrays that came in, one bit for each: (those that it depends on, those that it
# is made from element by element).
Sources = tuple[int, int]
_NONE: Sources = (0, 0)


class Parameters:
    """What a step trains."""

    def __init__(self, arrays: list[Any]) -> None:
        self.count = sum(jaxprs.elements(one) for one in arrays)
        self.bytes = sum(jaxprs.elements(one) * int(one.aval.dtype.itemsize) for one in arrays)
        by_dtype: dict[str, int] = {}
        for one in arrays:
            by_dtype[str(one.aval.dtype)] = by_dtype.get(str(one.aval.dtype), 0) + jaxprs.elements(one)
        self.dtype = max(by_dtype, key=lambda name: by_dtype[name])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameters) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def trained(closed: Any) -> Parameters | None:
    """The parameters among what goes into this step, or into the body of a loop of steps; None if that is not clear.
    Raises whatever an unknown form of it leads to."""
    jaxpr = jaxprs.opened(closed)
    kinds = {jaxprs.kind(var) for var in jaxpr.outvars}
    leaves = [var for var in jaxpr.invars if _is_float(var) and jaxprs.kind(var) in kinds]
    bits = {var: 1 << index for index, var in enumerate(leaves)}
    known = {var: (bits.get(var, 0), bits.get(var, 0)) for var in jaxpr.invars}
    ends = _Walk().through(jaxpr, [known[var] for var in jaxpr.invars])
    changed = [
        (var, sources)
        for var, sources in zip(jaxpr.outvars, ends)
        if _is_float(var) and not jaxprs.is_literal(var) and var not in bits
    ]
    return _judge(leaves, changed)


def _judge(leaves: list[Any], changed: list[tuple[Any, Sources]]) -> Parameters | None:
    """leaves: arrays that may be parameters. changed: arrays that come out, and what they are made of."""
    beside = _columns([reached & ~made for _, (reached, made) in changed], len(leaves))
    most = max(beside, default=0)
    wide = {index for index, count in enumerate(beside) if count and (count > _MANY or count >= _SHARE * most)}
    own = _pairs(leaves, changed, wide)
    if len(leaves) == len(own) == 1 and not most:
        return Parameters(leaves)  # there is nothing else
    found = wide.intersection(own)
    among = sum(1 << one for one in found)
    targets = {one for one in found if _is_target(one, own, among)}
    found -= targets
    among = sum(1 << one for one in found)
    on = {one: own[one][0] & among for one in found}  # what its new value depends on
    to = {one: sum(1 << other for other in found if on[other] >> one & 1) for one in found}  # what depends on it
    both = {one: on[one] & to[one] & ~(1 << one) for one in found}
    if len(found) > 1:
        found = {one for one in found if both[one]}  # the others are factors, such as a learning rate
    for one in found:
        alone = to[one] & ~on[one]
        if alone and any(both[between] & alone for between in found if both[one] >> between & 1):
            return None  # it goes into gradients and has none itself, as what a recurrent network remembers
    return Parameters([leaves[index] for index in sorted(found)]) if found else None


def _columns(rows: list[int], width: int) -> list[int]:
    """How many of these numbers have each of the bits."""
    if not rows:
        return [0] * width
    return [column.count("1") for column in zip(*(f"{row:0{width}b}" for row in rows))][::-1][:width]


def _is_target(one: int, own: dict[int, Sources], among: int) -> bool:
    """Whether its new value is made from another array, and that one's is not made from it."""
    others = own[one][1] & among & ~(1 << one)
    return any(others >> other & 1 and not own[other][1] >> one & 1 for other in own if others)


def _pairs(leaves: list[Any], changed: list[tuple[Any, Sources]], wide: set[int]) -> dict[int, Sources]:
    """Of each array that comes in: what its new value is made of. New values of fewest arrays are told first."""
    found: dict[int, Sources] = {}
    for var, sources in sorted(changed, key=lambda one: bin(one[1][1]).count("1")):
        kind, made = jaxprs.kind(var), sources[1]
        fitting = [index for index in range(len(leaves)) if made >> index & 1 and index not in found]
        fitting = [index for index in fitting if jaxprs.kind(leaves[index]) == kind]
        if fitting:
            found[min(fitting, key=lambda index: (index in wide, index))] = sources
    return found


class _Walk:
    def __init__(self) -> None:
        self._left = _MAX_EQUATIONS

    def through(self, jaxpr: Any, given: list[Sources]) -> list[Sources]:
        """What the results of a jaxpr are made of. given: what its arguments are made of."""
        jaxpr = jaxprs.opened(jaxpr)
        known: dict[Any, Sources] = dict(zip(jaxpr.invars, given))
        for equation in jaxpr.eqns:
            self._left -= 1
            if self._left <= 0:
                raise OverflowError
            taken = [_NONE if jaxprs.is_literal(var) else known.get(var, _NONE) for var in equation.invars]
            known.update(zip(equation.outvars, self._results(equation, taken)))
        return [_NONE if jaxprs.is_literal(var) else known.get(var, _NONE) for var in jaxpr.outvars]

    def _results(self, equation: Any, taken: list[Sources]) -> list[Sources]:
        name, params = equation.primitive.name, equation.params
        if name in _REFERENCES:
            raise NotImplementedError(name)
        if not any(reached for reached, _ in taken):
            return [_NONE] * len(equation.outvars)
        if name == "scan":
            body, consts, carried = jaxprs.scan_parts(equation)
            return self._repeated(body, taken, consts, carried)
        if name == "while":
            first = int(params["cond_nconsts"])
            consts = int(params["body_nconsts"])
            return self._repeated(params["body_jaxpr"], taken[first:], consts, len(taken) - first - consts)
        if name == "cond":
            ends = [self.through(branch, taken[1:]) for branch in params["branches"]]
            return [_united(ways) for ways in zip(*ends)]
        for key in _CALLS:
            inner = jaxprs.opened(params.get(key))
            if inner is not None and len(inner.invars) == len(taken):
                return self.through(inner, taken)
        return [self._plain(equation, var, taken) for var in equation.outvars]

    def _plain(self, equation: Any, out: Any, taken: list[Sources]) -> Sources:
        shape, name = jaxprs.shape(out), equation.primitive.name
        if name == "select_n":
            taken, invars = taken[1:], equation.invars[1:]  # what is chosen, not by what
        else:
            invars = equation.invars
        if not shape and any(jaxprs.shape(var) for var in invars):
            return _NONE  # a norm of many arrays, by which each is scaled, does not make one of the others
        reached = made = 0
        for var, (depends, elements) in zip(invars, taken):
            reached |= depends
            if jaxprs.shape(var) == shape and name not in _MIXING:
                made |= elements
        return reached, made

    def _repeated(self, body: Any, taken: list[Sources], consts: int, carried: int) -> list[Sources]:
        """A loop: what is carried goes in again. Nothing in it takes the place of an array from outside."""
        state = taken[consts : consts + carried]
        ends: list[Sources] = []
        for _ in range(_MAX_ROUNDS):
            ends = self.through(body, [*taken[:consts], *state, *taken[consts + carried :]])
            after = [(before | now, 0) for (before, _), (now, _) in zip(state, ends)]
            if [one for one, _ in after] == [one for one, _ in state]:
                break
            state = after
        else:
            raise OverflowError
        return [*((reached, 0) for reached, _ in state), *((reached, 0) for reached, _ in ends[carried:])]


def _united(ways: tuple[Sources, ...]) -> Sources:
    reached = made = 0
    for depends, elements in ways:
        reached, made = reached | depends, made | elements
    return reached, made


def _is_float(var: Any) -> bool:
    return "float" in str(getattr(var.aval, "dtype", ""))
