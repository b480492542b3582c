"""Money, ratios, durations and Kubernetes' own quantities: strings in the API, exact values in code.

The API carries no floats: 0.1 has no exact binary form, and clients in other languages would round it differently.
Each type brings the rule that the API server enforces on it. That rule is CEL and not `pattern`, because a pattern's
message shows the user a regular expression and hides the remedy.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta
from decimal import ROUND_CEILING, Decimal, InvalidOperation, localcontext
from functools import lru_cache
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from rightpool.api.rules import Rule

MONEY_PATTERN: Final = r"^[0-9]{1,12}(\.[0-9]{1,9})?$"
LARGE_PATTERN: Final = r"^[0-9]{1,31}(\.[0-9]{1,40})?([eE]\+?[0-9]{1,2})?$"
RATIO_PATTERN: Final = r"^(0(\.[0-9]{1,9})?|1(\.0{1,9})?)$"
DURATION_PATTERN: Final = r"^([0-9]{1,6}(\.[0-9]{1,3})?(ms|s|m|h)){1,4}$"
TIME_PATTERN: Final = (
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)

LARGEST: Final = Decimal("1e30")
_QUANTITY: Final = re.compile(r"([+-]?[0-9.]{1,40})(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,3})?")
_DECIMAL_UNITS: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_UNITS: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_MOST: Final = Decimal(2**63 - 1)  # Kubernetes holds no larger quantity; it reads what is above as this
_DURATION_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_DURATION_MICROSECONDS: Final = {"ms": 10**3, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6}
_LONGEST_FLOAT: Final = 1e15  # above, a float's shortest text has fewer digits than its exact value


# --- reading ---------------------------------------------------------------------------------------------------------


def _decimal(value: Any, pattern: str, wanted: str) -> Decimal:
    text = format(value, "f") if isinstance(value, Decimal) else value
    if not isinstance(text, str) or not re.fullmatch(pattern, text):
        raise ValueError(f"{value!r} is not {wanted}")
    return Decimal(text)


def parse_money(value: Any) -> Decimal:
    """Dollars, not negative."""
    return _decimal(value, MONEY_PATTERN, 'an amount of money such as "12.50", 0 or more')


def parse_ratio(value: Any) -> Decimal:
    """A share between 0 and 1."""
    return _decimal(value, RATIO_PATTERN, 'a share between "0" and "1" such as "0.85"')


def parse_rate(value: Any) -> Decimal:
    """A speed above 0."""
    rate = _decimal(value, MONEY_PATTERN, 'a number above 0 such as "24"')
    if rate <= 0:
        raise ValueError(f"{value!r} is not above 0")
    return rate


def parse_large(value: Any) -> Decimal:
    """A number from 1 to 1e30 that may have an exponent: "2.1e12"."""
    text = str(value) if isinstance(value, Decimal) else value
    number = Decimal(text) if isinstance(text, str) and re.fullmatch(LARGE_PATTERN, text) else Decimal(0)
    if not 1 <= number <= LARGEST:
        raise ValueError(f'{value!r} is not a number from 1 to 1e30 such as "2.1e12"')
    return number


def parse_duration(value: Any) -> timedelta:
    """A duration as Go and Kubernetes write it: "120s", "5m", "1h30m", "500ms"."""
    if isinstance(value, timedelta):
        if value < timedelta(0):
            raise ValueError(f"{value!r} is negative")
        return value
    if not isinstance(value, str) or not re.fullmatch(DURATION_PATTERN, value):
        raise ValueError(f'{value!r} is not a duration such as "90s", "5m" or "1h30m"')
    parts = _DURATION_PART.findall(value)
    return timedelta(microseconds=int(sum(Decimal(number) * _DURATION_MICROSECONDS[unit] for number, unit in parts)))


def parse_quantity(value: object) -> Decimal | None:
    """A Kubernetes quantity ("500m", "14Gi", "1e3", 2) as a number; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        return None
    number, unit = match[1], match[2] or ""
    with localcontext() as context:
        context.prec = 60
        try:
            if unit in _BINARY_UNITS:
                amount = Decimal(number) * _BINARY_UNITS[unit]
            elif unit in _DECIMAL_UNITS:
                amount = Decimal(number).scaleb(_DECIMAL_UNITS[unit])
            else:
                amount = Decimal(number + unit)
        except InvalidOperation:
            return None
    return max(-_MOST, min(amount, _MOST))


def parse_count(value: object) -> int | None:
    """A quantity of things that can't be divided: 8, and a thousand as 1k. None for what can be no count of them."""
    amount = parse_quantity(value)
    return int(amount) if amount is not None and amount >= 0 and amount == amount.to_integral_value() else None


def parse_memory(value: Any) -> int:
    """A Kubernetes quantity in whole bytes. A fraction of a byte is rounded up, as the API server does."""
    amount = None if isinstance(value, float) else parse_quantity(value)
    if amount is None or str(value).endswith("m"):
        raise ValueError(f'{value!r} is not an amount of memory such as "14Gi"')
    if amount <= 0:
        raise ValueError(f"{value!r} is not above 0")
    return int(amount.to_integral_value(ROUND_CEILING))


# --- writing ---------------------------------------------------------------------------------------------------------


def _format(value: Decimal | float, significant: int, places_at_least: int, places_at_most: int | None = None) -> str:
    """Plain decimal notation with about `significant` digits; digits before the point are never dropped."""
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be shown: what is unknown must be absent")
    number = value if isinstance(value, Decimal) or abs(value) < _LONGEST_FLOAT else Decimal(repr(float(value)))
    if not number:
        magnitude = 0
    else:  # a status has dozens of floats, and making each a Decimal takes longer than all the rest
        magnitude = number.adjusted() if isinstance(number, Decimal) else math.floor(math.log10(abs(number)))
    places = max(significant - 1 - magnitude, places_at_least)
    if places_at_most is not None and magnitude >= 0:
        places = min(places, places_at_most)
    text = f"{number:.{places}f}"
    if places:
        whole, _, fraction = text.partition(".")
        fraction = fraction.rstrip("0").ljust(places_at_least, "0")
        text = f"{whole}.{fraction}" if fraction else whole
    return text[1:] if text[0] == "-" and not text.strip("-0.") else text


def format_money(amount: Decimal | float) -> str:
    """Dollars with cents; below one dollar three significant digits: 8.048 → "8.05", 0.001234 → "0.00123"."""
    if isinstance(amount, float) and 1.0 <= abs(amount) < _LONGEST_FLOAT:
        return f"{amount:.2f}"
    return _format(amount, 3, 2, 2)


def format_cents(amount: Decimal | float) -> str:
    """Dollars to the cent, for a column: 12.304 → "12.30", -0.000001 → "0.00"."""
    text = f"{amount:.2f}"
    return "0.00" if text == "-0.00" else text


def format_ratio(ratio: Decimal | float, digits: int = 2) -> str:
    """A share with at least two decimals: 0.9712 → "0.97", 0.0042 → "0.0042"."""
    if isinstance(ratio, float) and digits == 2 and 0.1 <= abs(ratio) < _LONGEST_FLOAT:
        return f"{ratio:.2f}"
    return _format(ratio, digits, 2)


def format_quantity(quantity: Decimal | float, digits: int = 3) -> str:
    """A measured number with `digits` significant digits: 1180.3 → "1180", 0.21712 → "0.217", 1e-7 → "0.0000001"."""
    if isinstance(quantity, float):  # a third of the time, and the same text unless it has an exponent or is no number
        text = f"{quantity:.{digits}g}"
        if "e" not in text and "n" not in text and text != "-0":
            return text
    return _format(quantity, digits, 0)


@lru_cache(maxsize=256)  # the windows of a fleet have few lengths
def format_duration(duration: timedelta) -> str:
    """The shortest exact form: 90 s → "1m30s", 1.5 s → "1s500ms", 0 → "0s". Finer than a millisecond is dropped."""
    milliseconds = duration // timedelta(milliseconds=1)
    if milliseconds < 0:
        raise ValueError(f"{duration!r} is negative")
    text = ""
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, milliseconds = divmod(milliseconds, size)
        if count:
            text += f"{count}{unit}"
    return text or "0s"


def format_memory(size: int) -> str:
    """Bytes with the largest binary suffix that keeps the value exact: 15032385536 → "14Gi"."""
    for unit, factor in reversed(_BINARY_UNITS.items()):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def _plain(value: Decimal) -> str:
    return format(value, "f")


# --- types -----------------------------------------------------------------------------------------------------------


def _string(max_length: int, *rules: Rule) -> WithJsonSchema:
    return WithJsonSchema(
        {
            "type": "string",
            "maxLength": max_length,
            "x-kubernetes-validations": [rule.to_dict() for rule in rules],
        }
    )


def _cel(pattern: str) -> str:
    """A regular expression as a CEL raw string."""
    return f"r'{pattern}'"


_MONEY_RULE: Final = Rule(
    f"self.matches({_cel(MONEY_PATTERN)})",
    'must be an amount in dollars, 0 or more, in quotes and without sign, currency or exponent: write "12.50"',
)
_RATIO_RULE: Final = Rule(
    f"self.matches({_cel(RATIO_PATTERN)})",
    'must be a share between 0 and 1, in quotes: write "0.85" for 85%',
)
_RATE_RULE: Final = Rule(
    f"self.matches({_cel(MONEY_PATTERN)}) && double(self) > 0.0",
    'must be a number above 0, in quotes: write "24"',
)
_LARGE_RULE: Final = Rule(
    f"self.matches({_cel(LARGE_PATTERN)}) && double(self) >= 1.0 && double(self) <= 1e30",
    'must be a number from 1 to 1e30, in quotes: write "2.1e12"',
)
_FREQUENCY_RULE: Final = Rule(
    f"self.matches({_cel(MONEY_PATTERN)})", 'must be a number, 0 or more, in quotes: write "0.5" for once in two days'
)
_DURATION_RULE: Final = Rule(
    f"self.matches({_cel(DURATION_PATTERN)})",
    "must be a duration, 0 or more: write 90s, 5m or 1h30m",
)
_MEMORY_RULE: Final = Rule(
    "isQuantity(self) && quantity(self).isGreaterThan(quantity('0')) && !self.endsWith('m')",
    "must be an amount of memory above 0: write 14Gi",
)


def lasting(shortest: str, example: str, longest: str = "") -> WithJsonSchema:
    """Schema of a duration that must not be shorter, nor longer than `longest` where that is given."""
    at_most = f" && duration(self) <= duration('{longest}')" if longest else ""
    limit_text = f", {longest} at most" if longest else ""
    return _string(
        32,
        Rule(
            f"self.matches({_cel(DURATION_PATTERN)}) && duration(self) >= duration('{shortest}'){at_most}",
            f"must be a duration of {shortest} or more{limit_text}: write {example}",
        ),
    )


def a_second_or_more(example: str, longest: str = "") -> WithJsonSchema:
    """Schema of a duration that must not be shorter, nor longer than `longest` where that is given."""
    return lasting("1s", example, longest)


TIME_SCHEMA: Final[dict[str, Any]] = {
    "type": "string",
    "maxLength": 40,
    "x-kubernetes-validations": [
        Rule(
            f"self.matches({_cel(TIME_PATTERN)}) && timestamp(self) > timestamp('1970-01-01T00:00:00Z')",
            "must be a time with its zone: write 2026-12-01T00:00:00Z",
        ).to_dict()
    ],
}
"""Schema of an instant that a user writes. `format: date-time` would refuse with the word "date-time" alone."""

Money = Annotated[Decimal, BeforeValidator(parse_money), PlainSerializer(_plain, str), _string(24, _MONEY_RULE)]
"""Dollars, 0 or more."""

Ratio = Annotated[Decimal, BeforeValidator(parse_ratio), PlainSerializer(_plain, str), _string(12, _RATIO_RULE)]
"""A share between 0 and 1."""

Frequency = Annotated[Decimal, BeforeValidator(parse_money), PlainSerializer(_plain, str), _string(24, _FREQUENCY_RULE)]
"""How often a day, 0 or more."""

Rate = Annotated[Decimal, BeforeValidator(parse_rate), PlainSerializer(_plain, str), _string(24, _RATE_RULE)]
"""A speed above 0."""

Large = Annotated[Decimal, BeforeValidator(parse_large), PlainSerializer(str, str), _string(80, _LARGE_RULE)]
"""A number from 1 to 1e30, which may have an exponent."""

_DURATION_IO: Final = (BeforeValidator(parse_duration), PlainSerializer(format_duration, str))

Duration = Annotated[timedelta, *_DURATION_IO, _string(32, _DURATION_RULE)]
"""A span of time, 0 or more."""

Memory = Annotated[int, BeforeValidator(parse_memory), PlainSerializer(format_memory, str), _string(32, _MEMORY_RULE)]
"""Bytes, above 0."""
