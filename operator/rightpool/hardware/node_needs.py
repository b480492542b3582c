"""What the scheduler asks of a node for a pod: labels, affinity, resources beside the chips, and tolerated taints.

Nodes are asked as they are, whatever else runs on them: what is missing here is missing for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple

from rightpool.api.quantities import parse_quantity
from rightpool.hardware.node import Taint, tolerates

CPU: Final = "cpu"
# Amounts of memory are rounded up to this on nodes: those of one type differ by a few megabytes, and are one shape.
MEMORY_STEP: Final = 64 * 2**20

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"

Aspect = tuple[str, str]
"""What is asked of nodes: ("label", key), ("resource", name) or ("taint", "")."""
Labels = frozenset[tuple[str, str]]


class NodeShape(NamedTuple):
    """All that needs ask of a node. Equal nodes are one."""

    labels: Labels = frozenset()
    """At the keys that jobs ask for."""
    offers: tuple[tuple[str, int], ...] = ()
    """Allocatable amounts of the resources that jobs ask for, where they are known; CPUs in thousandths."""
    taints: tuple[Taint, ...] = ()
    """Those that the pool does not tolerate."""


class Expression(NamedTuple):
    """One of matchExpressions of a required node affinity."""

    key: str
    """Of the label."""
    operator: str
    """In, NotIn, Exists, DoesNotExist, Gt or Lt."""
    values: tuple[str, ...] = ()
    """What it is compared with."""

    def __str__(self) -> str:
        return " ".join(part for part in (self.key, self.operator, ",".join(self.values)) if part)

    def holds(self, value: str | None) -> bool:
        """Whether it holds where the label has this value; None: no such label."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                try:
                    here, there = int(value or ""), int(self.values[0])
                except (ValueError, IndexError):
                    return False
                return here > there if self.operator == "Gt" else here < there
        return True


Terms = tuple[tuple[Expression, ...], ...]
"""Terms of a required node affinity: one of them has to hold, with all of its expressions."""


def meets(terms: Terms, values: Mapping[str, str], *, others: bool = False) -> bool:
    """Whether one of the terms holds where labels have these values. others: there may be more, of any value."""
    return any(
        all((others and ask.key not in values) or ask.holds(values.get(ask.key)) for ask in term) for term in terms
    )


def in_words(terms: Terms) -> str:
    """The terms as one reads them."""
    return " or ".join(" and ".join(str(ask) for ask in term) for term in terms)


class NodeNeeds(NamedTuple):
    """What a pod template asks of each node that one of its pods is on."""

    labels: tuple[tuple[str, str], ...] = ()
    """Its nodeSelector, sorted."""
    terms: Terms = ()
    """Its required node affinity. Empty: there is none."""
    requests: tuple[tuple[str, int], ...] = ()
    """What one pod requests beside chips, sorted; CPUs in thousandths."""
    tolerations: tuple[tuple[tuple[str, str], ...], ...] = ()
    """Its own, each as sorted pairs."""
    volumes: tuple[Terms, ...] = ()
    """Required node affinity of the volumes that its claims are bound to, sorted."""
    apart: str = ""
    """Label whose value all nodes of one unit of pods have, and no others'. Empty: units may be mixed."""

    @classmethod
    def of(cls, template: Mapping[str, Any]) -> NodeNeeds:
        """Of a pod template. What can't be read asks for nothing: the API server will say so."""
        pod = _mapping(template.get("spec"))
        selector, tolerations = _mapping(pod.get("nodeSelector")), _mappings(pod.get("tolerations"))
        return _shared(
            tuple(sorted((str(key), str(value)) for key, value in selector.items())),
            terms_of(_mapping(_mapping(pod.get("affinity")).get("nodeAffinity")).get(_REQUIRED)),
            tuple(sorted(_requests(pod).items())),
            tuple(
                tuple(sorted((key, text) for key, text in one.items() if isinstance(text, str))) for one in tolerations
            ),
        )

    def bound_to(self, volumes: Iterable[Terms]) -> NodeNeeds:
        """The same with volumes that can be used on some nodes alone."""
        return _shared(*self[:4], tuple(sorted(set(volumes))), self.apart)

    def kept_apart(self, label: str) -> NodeNeeds:
        """The same with units that are kept apart by a label, which every node must have then."""
        return _shared(*self[:5], label)

    def without(self, labels: Mapping[str, str]) -> NodeNeeds:
        """The same without what the nodeSelector has of these labels."""
        return _shared(tuple(label for label in self.labels if label not in labels.items()), *self[1:])

    @property
    def aspects(self) -> frozenset[Aspect]:
        """What has to be known of nodes to answer."""
        asks = (ask for terms in (self.terms, *self.volumes) for term in terms for ask in term)
        keys = {key for key, _ in self.labels} | {ask.key for ask in asks} | ({self.apart} if self.apart else set())
        found: set[Aspect] = {("label", key) for key in keys} | {("resource", name) for name, _ in self.requests}
        return frozenset(found | ({("taint", "")} if self.tolerations else set()))

    def unselected(self, labels: Labels) -> tuple[tuple[str, str], ...]:
        """Labels of the nodeSelector that nodes with these labels lack."""
        return tuple(label for label in self.labels if label not in labels)

    def drawn(self, labels: Labels) -> bool:
        """Whether the node affinity holds on nodes with these labels, and that of every volume, and units can be kept
        apart by them."""
        values = dict(labels)
        if self.apart and self.apart not in values:
            return False
        return all(meets(terms, values) for terms in (self.terms, *self.volumes) if terms)

    def short_of(self, shape: NodeShape) -> tuple[str, int, int] | None:
        """The first resource that the nodes have too little of, what a pod requests and what a node has."""
        offers = dict(shape.offers)
        return next(
            ((name, asked, offers[name]) for name, asked in self.requests if asked > offers.get(name, asked)), None
        )

    def repelled(self, shape: NodeShape) -> Taint | None:
        """The first taint of the nodes that neither the pool nor the template tolerates."""
        own = [dict(toleration) for toleration in self.tolerations]
        return next((taint for taint in shape.taints if not tolerates(own, taint)), None)

    def fit(self, shape: NodeShape) -> bool:
        """Whether the scheduler could ever put a pod there."""
        return (
            not self.unselected(shape.labels)
            and self.drawn(shape.labels)
            and self.short_of(shape) is None
            and self.repelled(shape) is None
        )


_shared = lru_cache(maxsize=4096)(NodeNeeds)  # jobs of one kind need the same
NO_NEEDS: Final = NodeNeeds()


def amounts(quantities: Mapping[str, Any], *, rounding: str = ROUND_CEILING) -> dict[str, int]:
    """Kubernetes quantities of resources as whole numbers: CPUs in thousandths, the rest as they are."""
    found = {}
    for name, text in quantities.items():
        amount = parse_quantity(text)
        if amount is not None and amount >= 0:
            scaled = amount * 1000 if name == CPU else amount
            found[str(name)] = int(scaled.to_integral_value(rounding))
    return found


def allocatable(quantities: Mapping[str, Any]) -> dict[str, int]:
    """What a node has to give of resources that are no extended ones."""
    found = amounts({name: text for name, text in quantities.items() if "/" not in name}, rounding=ROUND_FLOOR)
    found.pop("pods", None)
    return {name: size if size < 2**30 else -(-size // MEMORY_STEP) * MEMORY_STEP for name, size in found.items()}


def format_amount(name: str, amount: int) -> str:
    """48 of CPUs, 192Gi of memory, 4 of extended resources."""
    if name == CPU:
        return f"{Decimal(amount) / 1000:f}"
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        return f"{amount / 2**30:.5g}Gi"
    return str(amount)


def terms_of(selector: object) -> Terms:
    """Of a node selector, as pods and volumes have one; none where it can't be read."""
    return tuple(
        tuple(
            Expression(
                str(ask.get("key")), str(ask.get("operator")), tuple(str(value) for value in ask.get("values") or ())
            )
            for ask in _mappings(term.get("matchExpressions"))
        )
        for term in _mappings(_mapping(selector).get("nodeSelectorTerms"))
    )


def claims_of(template: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the PersistentVolumeClaims in a pod template's volumes, sorted."""
    volumes = _mappings(_mapping(template.get("spec")).get("volumes"))
    names = (_mapping(volume.get("persistentVolumeClaim")).get("claimName") for volume in volumes)
    return tuple(sorted({name for name in names if isinstance(name, str)}))


def _requests(pod: Mapping[str, Any]) -> dict[str, int]:
    """As the scheduler counts: the containers together with the sidecars, or what one init container needs beside the
    sidecars before it, whatever is more. A limit without a request is one."""
    together: dict[str, int] = {}
    for container in _mappings(pod.get("containers")):
        _add(together, _asked(container))
    sidecars: dict[str, int] = {}
    most: dict[str, int] = {}
    for container in _mappings(pod.get("initContainers")):
        if container.get("restartPolicy") == "Always":
            _add(sidecars, _asked(container))
            alone = sidecars
        else:
            alone = dict(sidecars)
            _add(alone, _asked(container))
        most = {name: max(most.get(name, 0), alone.get(name, 0)) for name in most.keys() | alone.keys()}
    _add(together, sidecars)
    together = {name: max(together.get(name, 0), most.get(name, 0)) for name in together.keys() | most.keys()}
    together |= _asked(pod)  # of the pod as a whole
    _add(together, amounts(_mapping(pod.get("overhead"))))
    return {name: amount for name, amount in together.items() if amount}


def _asked(container: Mapping[str, Any]) -> dict[str, int]:
    resources = _mapping(container.get("resources"))
    return amounts({**_mapping(resources.get("limits")), **_mapping(resources.get("requests"))})


def _add(totals: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        totals[name] = totals.get(name, 0) + amount


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> Iterable[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list | tuple) else []
