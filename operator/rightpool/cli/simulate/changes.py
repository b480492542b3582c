"""What would have been otherwise: pools, prices and policy, from options or a file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from rightpool.api.choices import Objective
from rightpool.api.model import ApiModel
from rightpool.api.policy import PlacementPolicySpec
from rightpool.cli.simulate.sources import NothingToSimulate, with_chips
from rightpool.cli.typed_file import read_typed
from rightpool.hardware.accelerator import Price
from rightpool.hardware.pool import Pool
from rightpool.simulation.history import Scenario

MOST_CHIPS: Final = 10**7


class ChangesFile(ApiModel):
    """The file of --what-if."""

    pools: dict[str, str | int] = Field(default_factory=dict)
    """By pool: so many chips, or "+N" or "-N"."""

    prices: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(default_factory=dict)
    """By pool, dollars for a chip-hour."""

    objective: Objective | None = None
    """Of all jobs."""

    policy: PlacementPolicySpec | None = None
    """The spec of a PlacementPolicy."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is asked for."""

    pools: Mapping[str, str] = field(default_factory=dict)
    """By pool: N, +N or -N chips."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """By pool, dollars for a chip-hour."""
    objective: Objective | None = None
    """Of all jobs."""
    policy: PlacementPolicySpec | None = None
    """In the place of the cluster's."""

    @property
    def any(self) -> bool:
        """Whether there are some."""
        return bool(self.pools or self.prices or self.objective or self.policy)


def changes_of(arguments: argparse.Namespace) -> Changes:
    """Those of the options, which go before those of the file. Raises FileProblem and NothingToSimulate."""
    path: Path | None = arguments.what_if
    written = ChangesFile() if path is None else read_typed(path, ChangesFile, "file of changes")
    objective, policy = written.objective, written.policy
    if arguments.policy in {one.value for one in Objective}:
        objective = Objective(arguments.policy)
    elif arguments.policy is not None:
        policy = _policy(Path(arguments.policy))
    prices = {**written.prices, **prices_of(arguments.price)}
    pools = {name: str(chips) for name, chips in written.pools.items()} | pools_of(arguments.pool)
    return Changes(pools, prices, objective, policy)


def pools_of(texts: Sequence[str]) -> dict[str, str]:
    """Chips by pool, of options NAME=CHIPS. Raises NothingToSimulate."""
    return _pairs("--pool", texts)


def prices_of(texts: Sequence[str]) -> dict[str, float]:
    """Dollars for a chip-hour by pool, of options NAME=DOLLARS. Raises NothingToSimulate."""
    prices: dict[str, float] = {}
    for name, text in _pairs("--price", texts).items():
        try:
            prices[name] = float(text)
        except ValueError:
            prices[name] = -1.0
        if not 0.0 <= prices[name] < float("inf"):
            raise NothingToSimulate(f"--price {name}={text}: write dollars for a chip-hour, such as {name}=2.50")
    return prices


def changed(scenario: Scenario, changes: Changes) -> Scenario:
    """The same with these changes. Raises NothingToSimulate where a pool does not exist."""
    pools = dict(scenario.pools)
    for name, text in changes.pools.items():
        pool = _pool(pools, name)
        pools[name] = with_chips(pool, _chips(pool, text))
    for name, dollars in changes.prices.items():
        pools[name] = replace(_pool(pools, name), price=Price(dollars))
    return Scenario(pools, changes.policy or scenario.policy, changes.objective or scenario.objective)


def _pool(pools: Mapping[str, Pool], name: str) -> Pool:
    if name not in pools:
        raise NothingToSimulate(f"there is no pool {name}; there are {', '.join(sorted(pools)) or 'none'}")
    return pools[name]


def _chips(pool: Pool, text: str) -> int:
    digits = text.lstrip("+-")
    if not (digits.isascii() and digits.isdecimal() and len(text) - len(digits) <= 1 and int(digits) <= MOST_CHIPS):
        raise NothingToSimulate(f"--pool {pool.name}={text}: write chips as 48, +16 or -16")
    found = int(digits) if text[0] not in "+-" else pool.total + int(text)
    if found < 0:
        raise NothingToSimulate(f"--pool {pool.name}={text}: it has {pool.total} chips, and can't have fewer than 0")
    return found


def _policy(path: Path) -> PlacementPolicySpec:
    """Of a PlacementPolicy, or of its spec alone."""
    if not path.exists():
        objectives = ", ".join(one.value for one in Objective)
        raise NothingToSimulate(f"--policy {path}: there is no such file, and objectives are {objectives}")
    body = read_typed(path, dict, "PlacementPolicy")
    if "spec" in body:
        return read_typed(path, _PolicyFile, "PlacementPolicy").spec
    return read_typed(path, PlacementPolicySpec, "PlacementPolicy")


class _PolicyFile(ApiModel):
    apiVersion: str = ""
    kind: str = ""
    metadata: dict[str, object] = Field(default_factory=dict)
    spec: PlacementPolicySpec = Field(default_factory=PlacementPolicySpec)


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise NothingToSimulate(f"{option} {text}: write a pool's name, = and a number")
        found[name] = value
    return found
