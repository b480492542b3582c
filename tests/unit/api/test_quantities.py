"""Reading and writing of money, ratios, durations and Kubernetes' quantities."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from rightpool.api.quantities import (
    Duration,
    Memory,
    Money,
    Ratio,
    _format,
    format_cents,
    format_duration,
    format_memory,
    format_money,
    format_quantity,
    format_ratio,
    parse_count,
    parse_duration,
    parse_memory,
    parse_quantity,
)

MONEY = TypeAdapter(Money)
RATIO = TypeAdapter(Ratio)
DURATION = TypeAdapter(Duration)
MEMORY = TypeAdapter(Memory)

amounts = st.decimals(min_value=0, max_value=10**12 - 1, places=4)
shares = st.decimals(min_value=0, max_value=1, places=6)
durations = st.integers(min_value=0, max_value=10**11).map(lambda count: timedelta(milliseconds=count))
numbers = st.floats(min_value=1e-12, max_value=1e15)


@given(amounts)
def test_money_survives_the_wire(amount: Decimal) -> None:
    assert MONEY.validate_python(MONEY.dump_python(amount, mode="json")) == amount


@given(shares)
def test_ratio_survives_the_wire(share: Decimal) -> None:
    assert RATIO.validate_python(RATIO.dump_python(share, mode="json")) == share


@given(durations)
def test_duration_survives_the_wire(duration: timedelta) -> None:
    assert DURATION.validate_python(DURATION.dump_python(duration, mode="json")) == duration


@given(st.integers(min_value=1, max_value=2**59))
def test_memory_survives_the_wire(size: int) -> None:
    assert MEMORY.validate_python(MEMORY.dump_python(size, mode="json")) == size


@given(st.integers(min_value=1, max_value=10**6), st.sampled_from(["Ki", "Mi", "Gi", "Ti"]))
def test_memory_keeps_a_value_with_a_binary_suffix(count: int, unit: str) -> None:
    assert parse_memory(format_memory(parse_memory(f"{count}{unit}"))) == parse_memory(f"{count}{unit}")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("120s", 120), ("5m", 300), ("1h30m", 5400), ("500ms", 0.5), ("1.5h", 5400), ("0s", 0), ("1m90s", 150)],
)
def test_duration_is_read_as_go_reads_it(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "-5m", "5 m", "5d", "1e3s", "5m\n", "m", 5, None])
def test_invalid_durations_are_refused(text: object) -> None:
    with pytest.raises(ValidationError, match="is not a duration"):
        DURATION.validate_python(text)


@pytest.mark.parametrize("value", ["-1", "+1", "1e3", "1.", ".5", "$5", "NaN", "Infinity", "", "5\n", 5, 5.0, True])
def test_invalid_money_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="is not an amount of money"):
        MONEY.validate_python(value)


@pytest.mark.parametrize("value", ["1.01", "-0.1", "85%", "2", ""])
def test_invalid_ratios_are_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="is not a share"):
        RATIO.validate_python(value)


@pytest.mark.parametrize(
    ("text", "number"),
    [("1500m", 1.5), ("1Gi", 2**30), ("1e3", 1000), ("2", 2), (3, 3), ("1E", 10**18), (".5k", 500), ("0.5", 0.5)],
)
def test_quantities(text: object, number: float) -> None:
    value = parse_quantity(text)
    assert value is not None
    assert float(value) == number


@pytest.mark.parametrize("text", ["", "x", "1.2.3", "1kk", True, None, [], "1_0", "٣", "8x"])
def test_invalid_quantities(text: object) -> None:
    assert parse_quantity(text) is None


@pytest.mark.parametrize("text", ["9" * 40, "1e999", "9223372036854775808", "8Ei", "9" * 40 + "Ei", 10**30])
def test_quantities_are_limited_to_kubernetes_maximum(text: object) -> None:
    assert parse_quantity(text) == 2**63 - 1
    assert parse_quantity(f"-{text}") == 1 - 2**63


@pytest.mark.parametrize(
    ("text", "count"),
    [("8", 8), (8, 8), ("1k", 1000), ("1Ki", 1024), ("1e2", 100), ("8.0", 8), ("0", 0)]
    + [(text, None) for text in ("-8", "0.5", "500m", "1n", "", "x", None, True)],
)
def test_counts_are_whole(text: object, count: int | None) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize(
    ("text", "size"),
    [("14Gi", 14 * 2**30), ("14G", 14 * 10**9), ("1.5Ki", 1536), ("0.1", 1), ("+1e3", 1000), ("1u", 1)],
)
def test_memory_is_read_as_kubernetes_reads_it(text: str, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize("value", ["0", "0Gi", "14Qi", "-1Gi", "14 Gi", "", 0, -1, True, None, 1.5, "500m"])
def test_invalid_memory_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        MEMORY.validate_python(value)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (8.048, "8.05"),
        (212.4, "212.40"),
        (1234.567, "1234.57"),
        (0.42, "0.42"),
        (0.001234, "0.00123"),
        (0, "0.00"),
        (-3.2, "-3.20"),
        (-0.0, "0.00"),
        (1e-9, "0.000000001"),
        (999.999, "1000.00"),
        (Decimal("1.005"), "1.00"),
    ],
)
def test_money_is_shown_in_cents_or_three_digits(amount: float | Decimal, text: str) -> None:
    assert format_money(amount) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.9712, "0.97"), (0.5, "0.50"), (0.0042, "0.0042"), (1, "1.00"), (0, "0.00")]
)
def test_ratio_is_shown_with_two_digits(ratio: float, text: str) -> None:
    assert format_ratio(ratio) == text


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (1180.3, "1180"),
        (0.21712, "0.217"),
        (1e-7, "0.0000001"),
        (12345.6, "12346"),
        (3.0, "3"),
        (0, "0"),
        (99.96, "100"),
    ],
)
def test_quantity_is_shown_with_three_digits(quantity: float, text: str) -> None:
    assert format_quantity(quantity) == text


@given(numbers)
def test_no_number_is_shown_with_an_exponent_or_far_from_its_value(number: float) -> None:
    for show in (format_money, format_ratio, format_quantity):
        text = show(number)
        assert set(text) <= set("0123456789.")
        assert math.isclose(float(text), number, rel_tol=0.051)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_unknown_numbers_cannot_be_formatted(number: float) -> None:
    with pytest.raises(ValueError, match="must be absent"):
        format_quantity(number)


@pytest.mark.parametrize(
    ("seconds", "text"), [(90, "1m30s"), (1.5, "1s500ms"), (0, "0s"), (3600, "1h"), (0.0004, "0s"), (360000, "100h")]
)
def test_duration_is_shown_in_its_shortest_exact_form(seconds: float, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text


def test_a_negative_duration_cannot_be_shown() -> None:
    with pytest.raises(ValueError, match="is negative"):
        format_duration(timedelta(seconds=-1))


@pytest.mark.parametrize(
    ("amount", "text"),
    [(12.304, "12.30"), (-0.00000001, "0.00"), (0.0, "0.00"), (-0.006, "-0.01"), (1e6, "1000000.00")],
)
def test_cents(amount: float, text: str) -> None:
    assert format_cents(amount) == text


ANY_FLOAT = st.floats(allow_nan=False, allow_infinity=False)
EDGES = st.sampled_from([0.0, -0.0, 1e-4, 9.9999995e-5, 0.1, 0.0999999, 999999.5, 1e6, 1e15, 1e22, 0.1 + 0.2, -0.004])


@given(ANY_FLOAT | numbers | EDGES, st.integers(1, 9))
def test_the_short_way_to_a_text_gives_the_same_one(number: float, digits: int) -> None:
    assert format_quantity(number, digits) == _format(number, digits, 0)
    assert format_ratio(number) == _format(number, 2, 2)
    assert format_money(number) == _format(number, 3, 2, 2)


@given(st.floats(-1e20, 1e20) | numbers | EDGES)
def test_cents_are_those_of_the_exact_value(number: float) -> None:
    exact = round(Decimal(number), 2)
    assert format_cents(number) == str(abs(exact) if exact == 0 else exact)
