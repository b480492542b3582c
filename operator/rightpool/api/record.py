"""The base of what a status is made of: value objects for planning to work with, which pydantic reads and writes.

Making one costs what a dataclass costs and checks nothing: the operator's own values are right by construction. What is
read from the wire is checked field by field. How a record stands on the wire, and how it is stored, follows from the
types of its fields alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, ClassVar, Final, NamedTuple, Self, get_args, get_type_hints

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema, from_json, to_json

INLINE_KEYWORD: Final = "x-rightpool-inline"
_HERE: Final = "(inline)"  # no name that JSON of ours has: it is dropped from the places of errors
INLINE: Final[FieldInfo] = Field(validation_alias=_HERE, json_schema_extra={INLINE_KEYWORD: True})
"""Marks a field that is a Record and has no name on the wire: its own fields stand beside those of its owner."""

PACKED_KEYWORD: Final = "x-rightpool-packed"
PACKED: Final[FieldInfo] = Field(json_schema_extra={PACKED_KEYWORD: True})
"""Marks a field that stands in the working memory, and not by itself."""
WORKING_MEMORY: Final = "workingMemory"
"""Name of the text that holds what the operator must remember and nobody reads: `kubectl describe` prints each number
in a line of its own, and these are most of a status."""


class Record:
    """camelCase on the wire and snake_case in code. What is None is absent. Docstrings under the fields are the API's
    documentation.

    Unknown fields are ignored on reading: an object stored by a newer version must not stop an older operator.
    """

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel, extra="ignore")

    @classmethod
    def from_dict(cls, body: Any) -> Self:
        """What the wire form says. Raises ValueError, with the place, where that can't be."""
        try:
            made: Self = _ADAPTERS[cls].validator.validate_python(body)
        except ValidationError as error:
            raise _as_on_the_wire(error) from None
        return made

    def to_dict(self) -> dict[str, Any]:
        """The wire form."""
        writer = _ADAPTERS[type(self)].serializer
        body: dict[str, Any] = writer.to_python(self, mode="json", by_alias=True, exclude_none=True)
        _spread(body, type(self))
        return body

    @classmethod
    def stored(cls, body: Mapping[str, Any]) -> dict[str, Any]:
        """The wire form as it is stored: what is packed stands in the working memory alone, by its path."""
        rest, memory = dict(body), {}
        for path, name in _PACKED[cls]:
            holder = _holder(rest, path)
            if name in holder:
                memory[".".join((*path, name))] = holder.pop(name)
        return {**rest, WORKING_MEMORY: to_json(memory).decode()} if memory else rest

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> Mapping[str, Any]:
        """The wire form of what is stored. A working memory that can't be read costs what stands in it, and not the
        record."""
        if stored.get(WORKING_MEMORY) is None:
            return stored
        rest = dict(stored)
        try:
            memory = from_json(rest.pop(WORKING_MEMORY))
        except (ValueError, TypeError):
            return rest
        for path, name in _PACKED[cls] if isinstance(memory, Mapping) else ():
            known = ".".join((*path, name))
            if known in memory:
                _holder(rest, path).setdefault(name, memory[known])
        return rest

    @classmethod
    def names_of(cls, unit: Any) -> frozenset[str]:
        """Wire names of the fields whose type is this one of `units`."""
        hints = HINTS[cls]
        return frozenset(wire_name(name, hint) for name, hint in hints.items() if _mentions(hint, unit))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        for field in fields(cls):  # type: ignore[arg-type]
            field.type = HINTS[cls][field.name]  # pydantic would evaluate them once more
        schema: CoreSchema = handler(source)
        if not any(part.inline for part in PARTS[cls]):
            return schema

        def gather(data: Any) -> Any:
            """What is inlined reads the whole, of which it takes its own fields."""
            return {**data, _HERE: data} if isinstance(data, dict) else data

        # The name under which pydantic finds the schema again moves to the whole: a second field of this type would get
        # the inner part alone.
        inner: Any = {**schema}
        name = inner.pop("ref", None)
        return core_schema.no_info_before_validator_function(gather, inner, ref=name)


def _as_on_the_wire(error: ValidationError) -> ValidationError:
    """The error, with places that name fields as they stand on the wire."""
    problems = [
        InitErrorDetails(
            type=PydanticCustomError(problem["type"], problem["msg"]),
            loc=tuple(part for part in problem["loc"] if part != _HERE),
            input=problem["input"],
        )
        for problem in error.errors(include_url=False, include_context=False)
    ]
    return ValidationError.from_exception_data(error.title, problems)


def _spread(body: dict[str, Any], kind: type[Record]) -> None:
    """Move what is inlined beside its owner's fields. After the whole is written, and not by a serializer: pydantic
    looks through all that a serializer returns once more, at each level."""
    for part in _SPREADING[kind]:
        value = body.get(part.wire)
        for each in value if isinstance(value, list) else (value,):
            if each is not None:
                _spread(each, part.records[0])
        if part.inline:
            body |= body.pop(part.wire)


def _holder(body: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """A copy, in its place, of the part of a wire form that is at this path; an empty one where there is none."""
    for name in path:
        if not isinstance(body.get(name), Mapping):
            return {}
        body[name] = body = dict(body[name])
    return body


class Part(NamedTuple):
    """A field of a record, as its type says that it stands on the wire."""

    name: str
    """In code."""
    wire: str
    """On the wire: the alias that it declares, else the name in camelCase."""
    records: tuple[type[Record], ...]
    """What kind of records it holds; empty where it holds none."""
    inline: bool
    """Whether its fields stand beside those of its owner."""
    packed: bool
    """Whether it stands in the working memory."""


def _part(name: str, hint: Any) -> Part:
    extras = getattr(hint, "__metadata__", ())
    inline, packed = (any(extra is mark for extra in extras) for mark in (INLINE, PACKED))
    return Part(name, wire_name(name, hint), tuple(_records_of(hint)), inline, packed)


def _records_of(hint: Any) -> Iterator[type[Record]]:
    if isinstance(hint, type) and issubclass(hint, Record):
        yield hint
    for inner in get_args(hint):
        yield from _records_of(inner)


def wire_name(name: str, hint: Any) -> str:
    """The alias that the field declares, else its name in camelCase."""
    declared = (extra.alias for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, FieldInfo))
    return next(filter(None, declared), None) or to_camel(name)


def _mentions(hint: Any, unit: Any) -> bool:
    """Whether the hint is the unit, may be None beside it, or says more about it."""
    of, *arguments = get_args(unit)
    found, *more = get_args(hint) or (hint,)
    return (found == of and more[: len(arguments)] == arguments) or any(
        _mentions(part, unit) for part in get_args(hint)
    )


def _packed(kind: type[Record]) -> Iterator[tuple[tuple[str, ...], str]]:
    for part in PARTS[kind]:
        if part.packed:
            yield (), part.wire
            continue
        own = () if part.inline else (part.wire,)
        yield from (((*own, *path), name) for inner in part.records for path, name in _PACKED[inner])


class _OfKind(dict[type[Any], Any]):
    """What follows from a kind of record, found once."""

    def __init__(self, find: Callable[[type[Any]], Any]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, kind: type[Any]) -> Any:
        return self.setdefault(kind, self._find(kind))


# Python evaluates them anew each time, 40 µs a field.
HINTS: Final[Mapping[type[Any], dict[str, Any]]] = _OfKind(lambda kind: get_type_hints(kind, include_extras=True))
"""The types of the fields of each kind, with all that is said of them."""
PARTS: Final[Mapping[type[Any], tuple[Part, ...]]] = _OfKind(
    lambda kind: tuple(_part(*named) for named in HINTS[kind].items())
)
"""The fields of each kind of record on the wire."""
# The parts that are inlined, or hold what is.
_SPREADING: Final[Mapping[type[Any], tuple[Part, ...]]] = _OfKind(
    lambda kind: tuple(p for p in PARTS[kind] if p.inline or any(_SPREADING[inner] for inner in p.records))
)
# Path and name of what is packed.
_PACKED: Final[Mapping[type[Any], tuple[tuple[tuple[str, ...], str], ...]]] = _OfKind(lambda kind: tuple(_packed(kind)))
_ADAPTERS: Final[Mapping[type[Any], TypeAdapter[Any]]] = _OfKind(TypeAdapter)
