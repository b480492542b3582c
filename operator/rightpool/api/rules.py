"""CEL rules that the API server enforces, written next to the model or field that they protect."""

from __future__ import annotations

from typing import Any

from rightpool.api.value_object import value_object


@value_object
class Rule:
    """One entry of `x-kubernetes-validations`."""

    rule: str
    """CEL that is true of a valid object."""
    message: str
    """What is wrong, with the remedy."""
    field: str | None = None
    """Path of the field that the user must change, relative to the object that carries the rule (".maxChips"). None:
    the object itself."""
    expression: str | None = None
    """CEL that builds the message from the object; where it fails, `message` is shown."""
    reason: str | None = None
    """Of the error, as the API server has them; None: FieldValueInvalid."""

    def to_dict(self) -> dict[str, str]:
        entry = {"rule": self.rule, "message": self.message}
        if self.expression is not None:
            entry["messageExpression"] = self.expression
        if self.field is not None:
            entry["fieldPath"] = self.field
        if self.reason is not None:
            entry["reason"] = self.reason
        return entry


def not_set(field: str, why: str) -> Rule:
    """That a field is not the user's to set."""
    return Rule(f"!has(self.{field})", f"must not be set, since {why}: remove it", field=f".{field}")


def validations(*rules: Rule) -> dict[str, Any]:
    """Schema extension for `ConfigDict(json_schema_extra=…)` or `Field(json_schema_extra=…)`."""
    return {"x-kubernetes-validations": [rule.to_dict() for rule in rules]}
