"""The base of what a status is made of: value objects for planning to work with, which pydantic reads and writes.

Making one costs what a dataclass costs and checks nothing: the operator's own values are right by construction. What is
read from the wire is checked field by field.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, ClassVar, Final, Self, get_args, get_type_hints

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

INLINE_KEYWORD: Final = "x-rightpool-inline"
_HERE: Final = "(inline)"  # no name that JSON of ours has: it is dropped from the places of errors
INLINE: Final[FieldInfo] = Field(validation_alias=_HERE, json_schema_extra={INLINE_KEYWORD: True})
"""Marks a field that is a Record and has no name on the wire: its own fields stand beside those of its owner."""

PACKED_KEYWORD: Final = "x-rightpool-packed"
PACKED: Final[FieldInfo] = Field(json_schema_extra={PACKED_KEYWORD: True})
"""Marks a field that stands in the text of the working memory, and not by itself."""


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
    def names_of(cls, unit: Any) -> frozenset[str]:
        """Wire names of the fields whose type is this one of `units`."""
        hints = HINTS[cls]
        return frozenset(wire_name(name, hint) for name, hint in hints.items() if _mentions(hint, unit))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        inlined = _inlined(cls)
        for field in fields(cls):  # type: ignore[arg-type]
            field.type = HINTS[cls][field.name]  # pydantic would evaluate them once more
        schema: CoreSchema = handler(source)
        if not inlined:
            return schema

        def gather(data: Any) -> Any:
            """What is inlined reads the whole, of which it takes its own fields."""
            return {**data, _HERE: data} if isinstance(data, dict) else data

        # The name under which pydantic finds the schema again moves to the whole: a second field of this type would get
        # the inner part alone.
        inner: Any = {**schema}
        name = inner.pop("ref", None)
        return core_schema.no_info_before_validator_function(gather, inner, ref=name)


class _Adapters(dict[type[Any], TypeAdapter[Any]]):
    def __missing__(self, kind: type[Any]) -> TypeAdapter[Any]:
        return self.setdefault(kind, TypeAdapter(kind))


_ADAPTERS: Final = _Adapters()


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
    for name, nested, inline in _SPREADING[kind]:
        value = body.get(name)
        for part in value if isinstance(value, list) else (value,):
            if part is not None:
                _spread(part, nested)
        if inline:
            body |= body.pop(name)


class _Spreading(dict[type[Record], tuple[tuple[str, type[Record], bool], ...]]):
    """The fields that are inlined, or hold what is: wire name, what they are, and whether they are inlined."""

    def __missing__(self, kind: type[Record]) -> tuple[tuple[str, type[Record], bool], ...]:
        inlined = dict(_inlined(kind))
        hints = HINTS[kind]
        found = ((name, wire_name(name, hint), nested) for name, hint in hints.items() for nested in records_of(hint))
        spread = ((wire, nested, name in inlined) for name, wire, nested in found if name in inlined or self[nested])
        return self.setdefault(kind, tuple(spread))


_SPREADING: Final = _Spreading()


def records_of(hint: Any) -> Iterator[type[Record]]:
    """The kinds of records that a field of this type holds."""
    if isinstance(hint, type) and issubclass(hint, Record):
        yield hint
    for part in get_args(hint):
        yield from records_of(part)


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


class _Hints(dict[type[Any], dict[str, Any]]):
    """The types of the fields, with all that is said of them. Python evaluates them anew each time, 40 µs a field."""

    def __missing__(self, kind: type[Any]) -> dict[str, Any]:
        return self.setdefault(kind, get_type_hints(kind, include_extras=True))


HINTS: Final = _Hints()
"""By kind; each is evaluated once."""


def _inlined(kind: type[Any]) -> tuple[tuple[str, type[Record]], ...]:
    """Inlined fields by name, with what they are."""
    hints = HINTS[kind]
    return tuple(
        (field.name, hints[field.name].__origin__)
        for field in fields(kind)
        if any(extra is INLINE for extra in getattr(hints[field.name], "__metadata__", ()))
    )
