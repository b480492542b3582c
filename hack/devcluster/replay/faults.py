"""Faults of a pool or a pod: deviations from the published measurements."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

EVERY_POOL: Final = "all"  # keys of a ConfigMap are letters, digits and -._ only
_ITSELF: Final = "*"
CONFIG_MAP_NAMESPACE: Final = "kube-system"
CONFIG_MAP_NAME: Final = "simulation"
KEYS: Final = ("throughput", "throttle", "link", "silent", "lose")


class BadFault(ValueError):
    """An invalid fault. The message says what is expected."""


@dataclass(frozen=True, slots=True)
class Faults:
    """throughput, link: factors above 0 on speed. throttle: reported share of time. lose: names of pods, `*` for the
    pod that carries the annotation."""

    throughput: float = 1.0
    throttle: float = 0.0
    link: float = 1.0
    silent: bool = False
    lose: frozenset[str] = frozenset()

    def and_also(self, other: "Faults") -> "Faults":
        """The combination of both: factors are multiplied."""
        return Faults(
            throughput=self.throughput * other.throughput,
            throttle=max(self.throttle, other.throttle),
            link=self.link * other.link,
            silent=self.silent or other.silent,
            lose=self.lose | other.lose,
        )

    def loses(self, namespace: str, name: str) -> bool:
        return not self.lose.isdisjoint((name, f"{namespace}/{name}", _ITSELF))


NONE: Final = Faults()


def parse(text: str) -> Faults:
    """One value of the ConfigMap: a mapping in YAML or JSON."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadFault(f"neither JSON nor YAML: {error}") from None
    if value is None:
        return NONE
    if not isinstance(value, dict):
        raise BadFault('must be a mapping such as {"throughput": 0.5}')
    return from_mapping(value)


def from_annotations(annotations: Mapping[str, str], prefix: str) -> Faults:
    """The faults of one pod. Annotations are strings, so `lose` is true or false."""
    values: dict[str, Any] = {}
    for key in KEYS:
        text = annotations.get(prefix + key)
        if text is not None:
            values[key] = yaml.safe_load(text)
    if "lose" in values:
        values["lose"] = [_ITSELF] if _flag("lose", values["lose"]) else []
    return from_mapping(values)


def from_mapping(value: Mapping[str, Any]) -> Faults:
    unknown = sorted(set(map(str, value)) - set(KEYS))
    if unknown:
        raise BadFault(f"{', '.join(unknown)}: not a fault; there are {', '.join(KEYS)}")
    return Faults(
        throughput=_factor("throughput", value.get("throughput", 1.0)),
        throttle=_share("throttle", value.get("throttle", 0.0)),
        link=_factor("link", value.get("link", 1.0)),
        silent=_flag("silent", value.get("silent", False)),
        lose=_names(value.get("lose")),
    )


def _number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadFault(f"{key}: {value!r} is not a number")
    return float(value)


def _factor(key: str, value: Any) -> float:
    number = _number(key, value)
    if not 0 < number <= 100:
        raise BadFault(f"{key}: {number:g} must be above 0 (0.5 is half as fast)")
    return number


def _share(key: str, value: Any) -> float:
    number = _number(key, value)
    if not 0 <= number <= 1:
        raise BadFault(f"{key}: {number:g} must be a share between 0 and 1")
    return number


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise BadFault(f"{key}: {value!r} is neither true nor false")
    return value


def _names(value: Any) -> frozenset[str]:
    if value is None:
        return frozenset()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadFault("lose: must be the name of a pod or a list of names")
    return frozenset(names)
