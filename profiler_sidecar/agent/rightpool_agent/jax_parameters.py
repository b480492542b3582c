"""The parameters that a JAX step trains, told apart from the optimizer's state by what depends on what in its jaxpr.

A program passes parameters, momentum, averages and statistics to its step in any form, and all of them come back
changed. What tells parameters apart: gradients are computed with them, so that the new values of many other arrays
depend on each of them. Momentum changes what it belongs to and nothing else, as do averaged parameters and statistics
of a normalization. A target network is used for gradients as well, but its new values are made from new parameters,
element by element, and not the other way round.

Where one function updates two networks in a row, and the second one learns from the first one's new parameters, as in a
GAN, the first one's momentum acts on both. It does so by these new parameters alone: they are followed on as if they
were the old ones.

Nothing is told where that is not clear: where a state of another kind (of a recurrent network, of an environment)
comes back, where gradients are made in another function, and where the step keeps a matrix with as many rows as it has
parameters. An error of each row that is made from its reward looks like a parameter in here: `jax_handover` compares
what is told with what the step is given again. Nor is it clear where something scales a part of the loss and follows
what is learned: a temperature, weights of losses and multipliers of constraints act alike, and some are learned. A
learning rate acts on gradients when they are made, and what scales the whole loss follows nothing.
"""

from __future__ import annotations

import collections
import math
from typing import Any

from . import jax_traits, jaxprs

_MAX_EQUATIONS = 150_000  # in four walks at most
_MAX_IN_BRANCHES = 30_000  # looked at once more for each branch around them
_MAX_ROUNDS = 8  # through the body of a loop, until what depends on what is known
_MANY = 4  # arrays that an optimizer's state may change beside its own
_STATES = 3  # arrays like a parameter: itself, and two of an optimizer
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
_PICKS = ("dynamic_slice", "gather", "slice", "squeeze", "unstack")  # one number out of an array
_CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_REFERENCES = ("get", "swap", "addupdate", "ref_get", "ref_swap", "ref_addupdate")

# What is known of a value, as sets of arrays that came in, one bit for each: (those that it depends on, those that it
# is made from element by element, those that it depends on in another way, as through a matrix product or a sum).
Sources = tuple[int, int, int]
Changed = list[tuple[Any, Sources]]  # what comes out
_NONE: Sources = (0, 0, 0)
Kinds = collections.Counter[Any]
Ways = dict[int, list[Any]]  # id(equation) → those of its branches that are taken


class Parameters:
    """What a step trains."""

    def __init__(self, arrays: list[Any], whole: bool = True) -> None:
        self.whole = whole  # else there may be one more or less of them: a temperature, or a list of multipliers
        self.count = sum(jaxprs.elements(one) for one in arrays)
        self.bytes = sum(jaxprs.elements(one) * int(one.aval.dtype.itemsize) for one in arrays)
        self.kinds: Kinds = collections.Counter(map(jaxprs.kind, arrays))
        by_dtype: dict[str, int] = {}
        for one in arrays:
            by_dtype[str(one.aval.dtype)] = by_dtype.get(str(one.aval.dtype), 0) + jaxprs.elements(one)
        self.dtype = max(by_dtype, key=lambda name: by_dtype[name])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameters) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def trained(
    closed: Any,
    outside: bool = False,
    without: frozenset[Any] = frozenset(),
    ways: Ways | None = None,
    budget: jaxprs.Budget | None = None,
) -> Parameters | None:
    """The parameters among what goes into this step, or into the body of a loop of steps; None if that is not clear.
    outside: only those that no loop in it trains. without: arguments that are none of them. ways: those that it takes
    of several. Raises whatever an unknown form of it leads to."""
    budget = budget or jaxprs.Budget(_MAX_EQUATIONS)
    jaxpr = jaxprs.opened(closed)
    kinds = {jaxprs.kind(var) for var in jaxpr.outvars}
    leaves = [var for var in jaxpr.invars if _is_float(var) and jaxprs.kind(var) in kinds and var not in without]
    bits = {var: 1 << index for index, var in enumerate(leaves)}
    given = [(bits.get(var, 0), bits.get(var, 0), 0) for var in jaxpr.invars]

    def changed(instead: dict[Any, Sources], walk: _Walk) -> Changed:
        ends = zip(jaxpr.outvars, walk.through(jaxpr, given, instead))
        return [(var, made) for var, made in ends if _is_float(var) and not jaxprs.is_literal(var) and var not in bits]

    walk = _Walk(budget, ways)
    found = changed({}, walk)
    beside = _beside(found, len(leaves))
    wide = _wide(beside)
    renewed = {var: index for index, (var, _) in _pairs(leaves, found, wide).items() if index in wide}
    if _used(jaxpr, set(renewed)):
        # Not passed on, new values show what is used for gradients itself: state of the optimizer is not.
        alone = changed(dict.fromkeys(renewed, _NONE), _Walk(budget, ways))
        direct = {index for index, n in enumerate(_beside(alone, len(leaves))) if n}
        pairs = _pairs(leaves, found, direct)
        instead = {pairs[one][0]: (1 << one, 1 << one, 0) for one in wide & direct if one in pairs}
        wide &= _wide(_beside(changed(instead, _Walk(budget, ways)), len(leaves)))
    if not outside and _trained_in_loop(leaves, found, {one for one in wide if walk.carried >> one & 1}, wide):
        return None
    learned, factors = _judge(leaves, found, wide, max(beside, default=0))
    if not learned:
        return None
    if factors:  # what scales a part of the loss is learned itself, or follows what is learned
        summed = dict(zip(jaxpr.outvars, _Walk(budget, ways, norms=True).through(jaxpr, given)))
        among = sum(1 << one for one in learned)
        factors = [var for var in factors if summed[var][0] & among]
    return Parameters([leaves[index] for index in sorted(learned)], whole=not factors)


def sometimes(closed: Any, parameters: Parameters) -> bool:
    """Whether this step trains nothing in some of its turns: all of it in one branch of several. Raises OverflowError
    where its branches hold too much to tell: each is looked at by itself, and again in those around it."""
    budget = jaxprs.Budget(_MAX_IN_BRANCHES)
    ways = _idle(jaxprs.opened(closed), parameters.kinds, budget)
    if not ways:
        return False
    always = trained(closed, ways=ways)
    return always is None or not always.kinds & parameters.kinds


def _idle(jaxpr: Any, kinds: Kinds, budget: jaxprs.Budget) -> Ways:
    """The branches that train no arrays of these kinds, where others of the same equation do."""
    found: Ways = {}
    for equation in jaxpr.eqns:
        for inner in jaxprs.inside(equation):
            found.update(_idle(inner, kinds, budget))
        branches = equation.params.get("branches", ())
        idle = [branch for branch in branches if not _learns(branch, kinds, budget)]
        if 0 < len(idle) < len(branches):
            found[id(equation)] = idle
    return found


def _learns(branch: Any, kinds: Kinds, budget: jaxprs.Budget) -> bool:
    """Whether it makes gradients of arrays of these kinds and applies them."""
    if not any(jaxprs.kind(var) in kinds for var in jaxprs.opened(branch).outvars):
        return False
    try:
        found = trained(branch, budget=budget) if jax_traits.products(branch, budget)[0] else None
    except Exception:
        found = None
    if budget.left <= 0:
        raise OverflowError
    return found is not None and not found.kinds - kinds


def _judge(leaves: list[Any], changed: Changed, wide: set[int], most: int) -> tuple[set[int], list[Any]]:
    """The leaves that are parameters, none where that is not clear; and the new values of what may be one and may be
    none, since it acts on gradients as what scales a part of the loss. leaves: arrays that may be parameters. changed:
    arrays that come out, and what they are made of. wide: leaves that act on many others. most: on how many the one
    acts that acts on most."""
    pairs = _pairs(leaves, changed, wide)
    own = {index: sources for index, (_, sources) in pairs.items()}
    if len(leaves) == len(own) == 1 and not most:
        return {0}, []  # there is nothing else
    if _knows_curvature(leaves):
        return set(), []
    found = {one for one in wide.intersection(own) if jaxprs.shape(leaves[one])}
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
            return set(), []  # it goes into gradients and has none itself, as what a recurrent network remembers
    alike = {one: _alike(one, leaves, own, found) for one in found | targets}
    if any(jaxprs.shape(leaves[one]) and alike[one] for one in found) or any(len(alike[one]) > 1 for one in targets):
        return set(), []  # momentum goes into gradients, as where one function makes several updates of the same arrays
    factors = {one for one in wide.intersection(own) - found - targets if any(own[on][2] >> one & 1 for on in found)}
    itself = {one for one in found if own[one][2] >> one & 1}
    if itself:  # the gradient of a list does not depend on it, as those of multipliers of constraints
        factors |= {one for one in found - itself if len(jaxprs.shape(leaves[one])) == 1}
    return found, [pairs[one][0] for one in factors]


def _knows_curvature(leaves: list[Any]) -> bool:
    """Whether one of them may be a matrix of how all the others act together, as of BFGS, CMA-ES or a natural
    gradient."""
    sizes = [jaxprs.elements(one) for one in leaves]
    squares = [size for one, size in zip(leaves, sizes) if jaxprs.shape(one) == (math.isqrt(size),) * 2]
    return any(0 < sum(sizes) - size <= _STATES * math.isqrt(size) for size in squares)


def _beside(changed: Changed, width: int) -> list[int]:
    """On how many arrays each one that comes in acts, beside those that are made from it element by element."""
    return _columns([reached & ~made for _, (reached, made, _) in changed], width)


def _wide(beside: list[int]) -> set[int]:
    most = max(beside, default=0)
    return {index for index, count in enumerate(beside) if count and (count > _MANY or count >= _SHARE * most)}


def _used(jaxpr: Any, results: set[Any]) -> bool:
    """Whether any of these results is used in the function that makes it."""
    jaxpr = jaxprs.opened(jaxpr)
    for equation in jaxpr.eqns:
        if any(not jaxprs.is_literal(var) and var in results for var in equation.invars):
            return True
        inner = _called(equation)
        if inner is not None and _used(inner, set(_inside(inner, equation, results))):
            return True
    return False


def _called(equation: Any) -> Any:
    """The jaxpr that this equation calls with all of its arguments; None if it calls none."""
    for key in _CALLS:
        inner = jaxprs.opened(equation.params.get(key))
        if inner is not None and len(inner.invars) == len(equation.invars):
            return inner
    return None


def _inside(inner: Any, equation: Any, results: set[Any]) -> dict[Any, Any]:
    """These results of a call as the called jaxpr names them."""
    pairs = zip(inner.outvars, equation.outvars)
    return {var: out for var, out in pairs if out in results and not jaxprs.is_literal(var)}


def _columns(rows: list[int], width: int) -> list[int]:
    """How many of these numbers have each of the bits."""
    if not rows:
        return [0] * width
    return [column.count("1") for column in zip(*(f"{row:0{width}b}" for row in rows))][::-1][:width]


def _is_target(one: int, own: dict[int, Sources], among: int) -> bool:
    """Whether its new value is made from another array, and that one's is not made from it."""
    others = own[one][1] & among & ~(1 << one)
    return any(others >> other & 1 and not own[other][1] >> one & 1 for other in own if others)


def _trained_in_loop(leaves: list[Any], changed: Changed, carried: set[int], wide: set[int]) -> bool:
    """Whether a loop inside the step trains any of these arrays, which it carries: all parameters that they act on act
    on what comes out of it. What a recurrent network remembers does not depend on the layers that read it."""
    own = _pairs(leaves, changed, wide)
    for one in carried - set(own):
        on = sum(1 << other for other in wide & set(own) if own[other][1][0] >> one & 1)
        kind, paired = jaxprs.kind(leaves[one]), {var for var, _ in own.values()}
        rest = [reached for var, (reached, _, _) in changed if jaxprs.kind(var) == kind and var not in paired]
        if on and any(reached >> one & 1 and not on & ~reached for reached in rest):
            return True
    return False


def _alike(one: int, leaves: list[Any], own: dict[int, Sources], among: set[int]) -> set[int]:
    """Other arrays of the same shape and dtype that its new value is made from."""
    kind, made = jaxprs.kind(leaves[one]), own[one][1]
    return {other for other in among - {one} if made >> other & 1 and jaxprs.kind(leaves[other]) == kind}


def _pairs(leaves: list[Any], changed: Changed, wide: set[int]) -> dict[int, tuple[Any, Sources]]:
    """Of each array that comes in: its new value and what that is made of. Those of fewest arrays are told first."""
    found: dict[int, tuple[Any, Sources]] = {}
    for var, sources in sorted(changed, key=lambda one: bin(one[1][1]).count("1")):
        kind, made = jaxprs.kind(var), sources[1]
        fitting = [index for index in range(len(leaves)) if made >> index & 1 and index not in found]
        fitting = [index for index in fitting if jaxprs.kind(leaves[index]) == kind]
        if fitting:
            found[min(fitting, key=lambda index: (index in wide, index))] = var, sources
    return found


class _Walk:
    def __init__(self, budget: jaxprs.Budget, ways: Ways | None = None, norms: bool = False) -> None:
        self._budget = budget
        self._norms = norms  # whether a single number depends on the arrays that it sums up
        self._ways = ways or {}
        self.carried = 0  # arrays that loops begin with, one bit for each

    def through(self, jaxpr: Any, given: list[Sources], instead: dict[Any, Sources] | None = None) -> list[Sources]:
        """What the results of a jaxpr are made of. given: what its arguments are made of. instead: what is told of
        some results to the equations that use them."""
        jaxpr = jaxprs.opened(jaxpr)
        known: dict[Any, Sources] = dict(zip(jaxpr.invars, given))
        instead = instead or {}
        visible = known if not instead else dict(known)
        for equation in jaxpr.eqns:
            self._budget.take()
            taken = [_NONE if jaxprs.is_literal(var) else visible.get(var, _NONE) for var in equation.invars]
            within = {var: instead[var] for var in equation.outvars if var in instead}
            results = self._results(equation, taken, within)
            known.update(zip(equation.outvars, results))
            if instead:
                visible.update({**dict(zip(equation.outvars, results)), **within})
        return [_NONE if jaxprs.is_literal(var) else known.get(var, _NONE) for var in jaxpr.outvars]

    def _results(self, equation: Any, taken: list[Sources], instead: dict[Any, Sources]) -> list[Sources]:
        name, params = equation.primitive.name, equation.params
        if name in _REFERENCES:
            raise NotImplementedError(name)
        if not any(reached for reached, _, _ in taken):
            return [_NONE] * len(equation.outvars)
        if name == "scan":
            body, consts, carried = jaxprs.scan_parts(equation)
            return self._repeated(body, taken, consts, carried)
        if name == "while":
            first = int(params["cond_nconsts"])
            consts = int(params["body_nconsts"])
            return self._repeated(params["body_jaxpr"], taken[first:], consts, len(taken) - first - consts)
        if name == "cond":
            branches = self._ways.get(id(equation), params["branches"])
            ends = [self.through(branch, taken[1:]) for branch in branches]
            return [_united(ways) for ways in zip(*ends)]
        inner = _called(equation)
        if inner is not None:
            within = {var: instead[out] for var, out in _inside(inner, equation, set(instead)).items()}
            return self.through(inner, taken, within)
        return [self._plain(equation, var, taken) for var in equation.outvars]

    def _plain(self, equation: Any, out: Any, taken: list[Sources]) -> Sources:
        shape, name = jaxprs.shape(out), equation.primitive.name
        if name == "select_n":
            taken, invars = taken[1:], equation.invars[1:]  # what is chosen, not by what
        else:
            invars = equation.invars
        sums = not shape and name not in _PICKS and any(jaxprs.elements(var) > 1 for var in invars)
        if sums and not self._norms:
            return _NONE  # a norm of many arrays, by which each is scaled, does not make one of the others
        reached = made = mixed = 0
        for var, (depends, elements, beside) in zip(invars, taken):
            reached |= depends
            if name in _MIXING or jaxprs.shape(var) not in (shape, ()):
                mixed |= depends
            else:
                mixed |= beside
                made |= elements if jaxprs.shape(var) == shape else 0
        return reached, made, mixed

    def _repeated(self, body: Any, taken: list[Sources], consts: int, carried: int) -> list[Sources]:
        """A loop: what is carried goes in again. Nothing in it takes the place of an array from outside."""
        state = taken[consts : consts + carried]
        for _, made, _ in state:
            self.carried |= made
        ends: list[Sources] = []
        for _ in range(_MAX_ROUNDS):
            ends = self.through(body, [*taken[:consts], *state, *taken[consts + carried :]])
            after = [(before | now, 0, mixed | more) for (before, _, mixed), (now, _, more) in zip(state, ends)]
            if [one[::2] for one in after] == [one[::2] for one in state]:
                break
            state = after
        else:
            raise OverflowError
        return [(reached, 0, mixed) for reached, _, mixed in [*state, *ends[carried:]]]


def _united(ways: tuple[Sources, ...]) -> Sources:
    reached = made = mixed = 0
    for depends, elements, beside in ways:
        reached, made, mixed = reached | depends, made | elements, mixed | beside
    return reached, made, mixed


def _is_float(var: Any) -> bool:
    return "float" in str(getattr(var.aval, "dtype", ""))
