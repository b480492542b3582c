"""The modules whose parameters an optimizer holds, and what they are called with.

They are found when the optimizer is made, among all modules there are. `__call__` of their class is wrapped, and not
the module: hooks of a module would be copied and saved with it. Compiled code is left alone: there the wrapper is no
more than the call of the original, and a module compiled as a whole is seen from outside.
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from _thread import get_ident
from typing import Any

from . import saves, torch_loader

_MAX_SCANS = 8
_MAX_CALLS = 4096
_MAX_PARTS = 64

_watched: dict[int, Root] = {}  # id(module) → what is known of it
# id(module without a forward pass) → id(part) → what is known of it, None where it can't be watched
_made_of: dict[int, dict[int, Root | None]] = {}
_owners: dict[int, list[Any]] = {}  # id(parameter) → weak references to it and to its modules up to the root
_patched: dict[Any, Any] = {}  # class → its own `__call__`, or None where it inherits one
_scans = 0
_busy = False  # inside the outermost call of a watched module
_is_compiling: Any = bool
_is_grad_enabled: Any = bool
in_backward = 0  # a forward pass in there is made again for its gradients
seen = False  # has a forward pass that trains been?
forwards = 0  # of those, since the last step
_newest: Root | None = None  # that was called last, in such a one
optimizers = 0  # groups of parameters that optimizers of PyTorch's were given


class Root:
    """A module that is called with the batch."""

    def __init__(self, module: Any, part: bool = False) -> None:
        self.module = weakref.ref(module)
        self.part = part  # of a module that is never called itself
        self.calls: list[tuple[int | None, Any]] = []  # (rows, weak reference to the first array)
        self.total = 0  # calls so far
        self.again = False  # was it called with the batch of the call before?
        self.fresh = False  # was the last call with another one?
        self.first = self._time_first(module)

    def called(self, args: Any, kwargs: Any) -> None:
        """Remember the rows of a forward pass that trains."""
        rows, first = _rows(args, kwargs, self.first)
        if len(self.calls) >= _MAX_CALLS:
            del self.calls[: _MAX_CALLS // 2]
        if self.calls and first is not None and _same(self.calls[-1][1], first):
            self.again, self.fresh = True, False
        else:
            self.fresh = True
            self.calls.append((rows, (weakref.ref(first), first._version) if first is not None else None))
            self.total += 1

    def take_back(self) -> None:
        """The last call is not learned from."""
        if self.fresh:
            self.fresh = False
            self.calls.pop()
            self.total -= 1

    @staticmethod
    def _time_first(module: Any) -> bool:
        """Whether some part of it has time for the first dimension, so that the batch may be the second."""
        return any(getattr(part, "batch_first", True) is False for part in module.modules())


def install(torch: Any) -> None:
    global _is_compiling, _is_grad_enabled
    _is_grad_enabled = torch.is_grad_enabled
    compiler = getattr(torch, "compiler", None)
    _is_compiling = compiler.is_compiling  # a PyTorch without it does without this
    optimizer = sys.modules["torch.optim.optimizer"].Optimizer
    original = optimizer.add_param_group

    @functools.wraps(original)
    def add_param_group(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise
        global optimizers
        optimizers += 1
        try:
            watch(self.param_groups[-1]["params"])
        except Exception:
            pass
        return result

    optimizer.add_param_group = add_param_group


def roots(parameters: list[Any]) -> list[Root]:
    """What is known of the modules that contain all of these parameters, the innermost first."""
    return [_watched[id(one)] for one in _chain(parameters) if id(one) in _watched]


def _chain(parameters: list[Any]) -> list[Any]:
    """The modules that contain all of these parameters, the innermost first; empty if they are not known."""
    lines = []
    for parameter in parameters:
        known = _owners.get(id(parameter))
        if known is None or known[0]() is not parameter:
            return []
        lines.append(_living(known))
    if not lines:
        return []
    common = {id(one) for one in lines[0]}.intersection(*({id(one) for one in line} for line in lines[1:]))
    return [one for one in lines[0] if id(one) in common]


def _living(line: list[Any]) -> list[Any]:
    """The modules of a parameter that are still there: their ids are those of other modules afterwards."""
    found = (reference() for reference in line[1:])
    return [one for one in found if one is not None]


def holds_others(parameters: list[Any]) -> bool:
    """Whether modules have parameters beside these, so that there may be passes without gradients."""
    trained = {id(one) for one in parameters}
    return any(key not in trained and line[0]() is not None for key, line in list(_owners.items()))


def beside(parameters: list[Any]) -> list[Any]:
    """The other parameters of the outermost modules that hold these: they compute, and do not learn."""
    trained = {id(one) for one in parameters}
    known = list(_owners.items())
    outermost = {key: id(modules[-1]) for key, line in known if (modules := _living(line))}
    around = {outermost[key] for key in trained.intersection(outermost)}
    others = (line[0]() for key, line in known if key not in trained and outermost.get(key) in around)
    return [one for one in others if one is not None]


def watch(parameters: list[Any]) -> None:
    """Meet the modules that hold these parameters."""
    global _scans
    if any(id(one) not in _owners or _owners[id(one)][0]() is not one for one in parameters):
        if _scans >= _MAX_SCANS:
            return
        _scans += 1
        _scan()
    around, trained = _chain(parameters), {id(one) for one in parameters}
    for module in around:
        if id(module) in _watched:
            _watched[id(module)].part = False
        else:
            _watch(module)
    for module in around:
        if _has_no_forward(module):
            _watch_parts(module, trained)


def _watch_parts(module: Any, trained: set[int]) -> None:
    """Meet those parts of a module without a forward pass that have some of these parameters: those of another group,
    which come later, may be of others."""
    if id(module) not in _made_of:
        _made_of[id(module)] = {}
        weakref.finalize(module, _made_of.pop, id(module), None).atexit = False
    known = _made_of[id(module)]
    for part in _parts(module, trained):
        if id(part) not in _watched and len(known) < _MAX_PARTS:
            _watch(part, part=True)
        known[id(part)] = _watched.get(id(part))


def parts(parameters: list[Any]) -> list[Root]:
    """What is known of the parts that are called in place of the modules that contain all of these parameters, which
    have no forward pass; empty where one has, or where a part is not known."""
    around = _chain(parameters)
    if not all(_has_no_forward(one) for one in around):
        return []
    found = {key: root for one in around for key, root in _made_of.get(id(one), {}).items()}
    known = [one for one in found.values() if one is not None]
    return known if len(known) == len(found) else []


def _has_no_forward(module: Any) -> bool:
    base = sys.modules["torch.nn.modules.module"].Module
    return type(module).forward is base.forward and "forward" not in module.__dict__


def _parts(module: Any, trained: set[int]) -> list[Any]:
    """The outermost modules inside with a forward pass of their own that have some of these parameters."""
    found: list[Any] = []
    for child in module.__dict__.get("_modules", {}).values():
        if child is None:
            continue
        if _has_no_forward(child):
            found += _parts(child, trained)
        elif any(id(one) in trained for one in child.parameters()):
            found.append(child)
    return found


def all_modules() -> list[Any]:
    """Of the program, as far as the collector of garbage knows them."""
    base = sys.modules["torch.nn.modules.module"].Module
    return [one for one in gc.get_objects() if issubclass(type(one), base)]


def _scan() -> None:
    """Which module owns which parameter, and which module contains which."""
    modules = all_modules()
    parents: dict[int, Any] = {}
    for module in modules:
        for child in module.__dict__.get("_modules", {}).values():
            if child is not None:
                parents.setdefault(id(child), module)
    for module in modules:
        for parameter in module.__dict__.get("_parameters", {}).values():
            if parameter is None:
                continue
            line: dict[int, Any] = {}
            at: Any = module
            while at is not None and id(at) not in line:
                line[id(at)] = weakref.ref(at)
                at = parents.get(id(at))
            _owners[id(parameter)] = [weakref.ref(parameter), *line.values()]


def _watch(module: Any, part: bool = False) -> None:
    if "ScriptModule" in {base.__name__ for base in type(module).__mro__}:
        return
    _watched[id(module)] = Root(module, part)
    weakref.finalize(module, _watched.pop, id(module), None).atexit = False
    kind = type(module)
    if kind.__name__ != "OptimizedModule":
        _patch(kind)


def _patch(kind: Any) -> None:
    """Wrap `__call__` of a class. It is called for each object of it; those that are not watched cost 0.1 µs."""
    if kind in _patched:
        return
    original = kind.__call__
    if getattr(original, "_rightpool", False):
        return  # inherited from one that is wrapped
    _patched[kind] = kind.__dict__.get("__call__")
    compiling, watched = _is_compiling, _watched

    @functools.wraps(original)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling():
            return original(self, *args, **kwargs)
        outermost = False
        try:
            if id(self) in watched:
                outermost = _note(self, args, kwargs)
        except Exception:
            pass
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            if outermost:
                failed()
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise
        finally:
            if outermost:
                _leave()

    __call__._rightpool = True  # type: ignore[attr-defined]
    kind.__call__ = __call__


def _unpatch(kind: Any) -> None:
    if kind in _patched:
        own = _patched.pop(kind)
        if own is None:
            del kind.__call__
        else:
            kind.__call__ = own


def install_compiled(module: Any) -> None:
    """`module` is torch._dynamo.eval_frame: a module compiled as a whole takes the place of what it is made of."""
    kind = module.OptimizedModule
    if getattr(kind.__call__, "_rightpool", False):
        return
    original = kind.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        try:
            inner = {id(part): part for part in self.modules()}
            for key in [key for key in inner if key in _watched]:
                _unpatch(type(inner[key]))
            if any(key in _watched for key in inner):
                _watched[id(self)] = Root(self)
                weakref.finalize(self, _watched.pop, id(self), None).atexit = False
                _adopt(self, set(inner))
        except Exception:
            pass

    kind.__init__ = __init__
    _patch(kind)


def _adopt(module: Any, inner: set[int]) -> None:
    """The module contains these: it belongs to the line of their parameters."""
    for line in _owners.values():
        within = {id(one) for one in _living(line)}
        if id(module) not in within and within & inner:
            line.append(weakref.ref(module))


def _note(module: Any, args: Any, kwargs: Any) -> bool:
    """A watched module is called. Whether it is the outermost one, and trains."""
    global _busy, seen, forwards, _newest
    if _busy or in_backward:
        return False
    if saves.since is not None and get_ident() == saves.thread:
        saves.go_on()
    root = _watched[id(module)]
    if root.part:  # several make one forward pass, so that they tell nothing of how many there were
        if _is_grad_enabled():
            root.called(args, kwargs)
        return False
    if not _is_grad_enabled():
        torch_loader.evaluated()
        return False
    _busy, _newest = True, None
    if module.training or not seen:
        if module.training:
            seen = True
        forwards += 1
        torch_loader.forward()
        root.called(args, kwargs)
        _newest = root
    else:
        torch_loader.evaluated()
    return True


def failed() -> None:
    """The newest forward pass, or the backward pass of it, has raised an error: where a program goes on all the same,
    as without memory, it has skipped the batch."""
    global forwards, _newest
    root, _newest = _newest, None
    if root is not None and forwards:
        forwards -= 1
        root.take_back()
        torch_loader.skipped()


def _leave() -> None:
    global _busy
    _busy = False


def _same(before: Any, array: Any) -> bool:
    """The same array with the same content: the batch is only looked at again."""
    return before is not None and before[0]() is array and before[1] == array._version


def _rows(args: Any, kwargs: Any, time_first: bool) -> tuple[int | None, Any]:
    """(rows of what a module is called with, its first array); None where its arrays do not agree."""
    arrays: list[Any] = []
    for value in (*args, *kwargs.values()):
        graphs = getattr(value, "num_graphs", None)
        if isinstance(graphs, int):
            return graphs, None
        _collect(value, arrays, 2)
    arrays = [array for array in arrays if array.dim()]
    if not arrays or len(arrays) > 64:
        return None, None
    if any(isinstance(value, (list, tuple)) and isinstance(next(iter(value), None), dict) for value in args):
        return None, arrays[0]  # a list of pictures with what is known of each
    first = arrays[0]
    leading = {array.shape[0] for array in arrays}
    if len(leading) != 1 or type(first.shape[0]) is not int or _is_transformed():
        return None, first
    whole = not first.is_floating_point()
    if time_first and first.dim() <= (2 if whole else 3):
        return None, first
    if all(array.dim() == 1 for array in arrays):
        # One number each, or one row and no batch, or the tokens of several rows one after another.
        return None, first
    return leading.pop(), first


def _is_transformed() -> bool:
    """Inside vmap or a functional gradient the first dimension is not what it seems."""
    return sys.modules["torch"]._C._functorch.peek_interpreter_stack() is not None


def _collect(value: Any, arrays: list[Any], depth: int) -> None:
    if hasattr(value, "is_floating_point") and hasattr(value, "dim"):
        arrays.append(value)
    elif depth and isinstance(value, dict):
        for one in value.values():
            _collect(one, arrays, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        for one in value[:64]:
            _collect(one, arrays, depth - 1)


def forget() -> None:
    """In a forked child: what its parent did is not its own."""
    global forwards
    forwards = 0
    for root in _watched.values():
        root.calls.clear()
        root.total, root.again = 0, False
