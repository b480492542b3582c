"""Values as Grafana writes them, by the unit of a panel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

_THOUSANDS: Final = (" K", " Mil", " Bil", " Tri")
_BINARY: Final = (" KiB", " MiB", " GiB", " TiB")
_RATES: Final = (" kB/s", " MB/s", " GB/s", " TB/s")
_WATTS: Final = (" kW", " MW", " GW")
_DURATIONS: Final = ((86400.0, " days"), (3600.0, " hours"), (60.0, " mins"), (1.0, " s"), (1e-3, " ms"))


def written(value: float, unit: str, decimals: int | None = None) -> str:
    """A value with its unit. Raises KeyError for a unit that no dashboard had when this was written."""
    return _UNITS[unit](value, decimals)


def _digits(value: float, decimals: int | None) -> str:
    """By default three significant digits, none behind a whole number."""
    if decimals is not None:
        return f"{value:.{decimals}f}"
    size = abs(value)
    text = f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 or size == 0 else 3}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(base: float, suffixes: Sequence[str], plain: str) -> Callable[[float, int | None], str]:
    def write(value: float, decimals: int | None) -> str:
        left, suffix = value, plain
        for larger in suffixes:
            if abs(left) < base:
                break
            left, suffix = left / base, larger
        return _digits(left, decimals) + suffix

    return write


def _dollars(value: float, decimals: int | None) -> str:
    text = _scaled(1e3, ("K", "M", "B"), "")(abs(value), decimals)
    return f"-${text}" if value < 0 else f"${text}"


def _duration(value: float, decimals: int | None) -> str:
    for seconds, name in _DURATIONS:
        if abs(value) >= seconds:
            return _digits(value / seconds, decimals) + name
    return _digits(value * 1e6, decimals) + " µs" if value else "0 s"


def _percent(value: float, decimals: int | None) -> str:
    return _digits(100.0 * value, decimals) + "%"


_UNITS: Final[dict[str, Callable[[float, int | None], str]]] = {
    "currencyUSD": _dollars,
    "s": _duration,
    "percentunit": _percent,
    "bytes": _scaled(1024.0, _BINARY, " B"),
    "Bps": _scaled(1e3, _RATES, " B/s"),
    "watt": _scaled(1e3, _WATTS, " W"),
    "joule": _scaled(1e3, (" kJ", " MJ", " GJ"), " J"),
    "cps": _scaled(1e3, tuple(f"{suffix.strip()} c/s" for suffix in _THOUSANDS), " c/s"),
    "short": _scaled(1e3, _THOUSANDS, ""),
}
