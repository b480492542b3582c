"""Pools of whole chips and of shares of them, and the jobs that are moved between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from devcluster import gpu
from devcluster.spec import NODE_NAME

DOMAIN: Final = "nvidia.com"  # by which the operator knows whose chips they are
# Speed of a share by that of the whole chip: bfloat16 products of 8192 x 8192, and copies of 1 GiB, by themselves.
SHARES: Final = {
    "H100": {50: (0.565, 0.926), 25: (0.293, 0.688)},
    "H200": {50: (0.561, 0.861), 25: (0.289, 0.526)},
}
CHIPS: Final = {  # data sheets: teraflops of fp32, tf32, bf16; GB/s; GB
    "H100": ("H100-SXM5-80GB", (66.9, 494.7, 989.4), 3352.0, 80),
    "H200": ("H200-SXM-141GB", (66.9, 494.7, 989.4), 4800.0, 141),
}


@dataclass(frozen=True)
class Kind:
    """A pool of one chip. percent: its share of multiprocessors; prices: dollars an hour in each of the price lists.

    as_fast_as: what its figures claim, as a share of the whole chip; None: the truth.
    """

    name: str
    percent: int | None
    prices: tuple[float, float]
    as_fast_as: float | None = None


# In the first list large shares cost too much for what they do, and in the second small ones. Each list has pools of
# its own, so that a job sees one list alone.
PRICE_LISTS: Final = 2
KINDS: Final = (
    Kind("whole", None, (3.6, 2.4)),
    Kind("half", 50, (1.8, 2.1)),
    Kind("quarter", 25, (0.9, 1.8)),
    Kind("boasted", 50, (2.4, 2.4), as_fast_as=1.6),
)


@dataclass(frozen=True)
class Case:
    """A job and what should become of it. pools: names of kinds that it may use, where it starts first.

    price_list: number of the one that its pools are of; jobs with `sizes` have a pool of their own.
    """

    name: str
    program: str
    price_list: int
    pools: tuple[str, ...]
    undone: bool = False
    sizes: tuple[int, int] | None = None  # chips at the start, and after the move
    deadline: bool = False


CASES: Final = (
    Case("normalise-down", "normalise", 0, ("whole", "half", "quarter")),
    Case("tiny-down", "tiny", 0, ("whole", "half", "quarter")),
    Case("starved-down", "starved", 0, ("whole", "half", "quarter")),
    Case("resnet-down", "resnet", 0, ("whole", "half", "quarter")),
    Case("tiny-half-down", "tiny", 0, ("half", "quarter")),
    Case("jax-down", "jax-gpt", 0, ("whole", "half", "quarter")),
    Case("gpt-up", "gpt", 1, ("quarter", "half", "whole")),
    Case("resnet-up", "resnet", 1, ("quarter", "half", "whole")),
    Case("jax-up", "jax-gpt", 1, ("quarter", "half", "whole")),
    Case("normalise-up", "normalise", 1, ("quarter", "whole")),
    Case("gpt-boasted", "gpt", 1, ("whole", "boasted"), undone=True),
    Case("wide-to-one", "wide", 2, ("pair",), sizes=(2, 1)),
    Case("deep-to-two", "deep", 2, ("pair",), sizes=(1, 2), deadline=True),
)


def chip_of(price_list: int, chips: int) -> int:
    """The chip that the pools of a price list are of, on a machine with so many."""
    return min(price_list, chips - 1)


def pool_documents(price_list: int, model: str) -> list[dict[str, Any]]:
    """The AcceleratorPools with these prices."""
    accelerator, peaks, bandwidth, memory = CHIPS[model]
    found = []
    for kind in KINDS:
        spec: dict[str, Any] = {
            "accelerator": accelerator,
            "chipsPerNode": 1,
            "resourceName": f"{DOMAIN}/{kind.name}-{price_list}",
            "nodeSelector": {"kubernetes.io/hostname": NODE_NAME},
            "price": {"perChipHour": f"{kind.prices[price_list]}"},
        }
        if kind.percent is not None:
            compute, copy = SHARES[model][kind.percent]
            if kind.as_fast_as is not None:
                compute = copy = kind.as_fast_as
            rates = zip(("fp32", "tf32", "bf16", "fp16"), (*peaks, peaks[-1]), strict=True)
            spec["accelerator"] = f"{model}-{kind.name}"
            spec["chip"] = {
                "memory": f"{memory}e9",
                "memoryGigabytesPerSecond": f"{bandwidth * copy:.0f}",
                "teraflops": {name: f"{rate * compute:.1f}" for name, rate in rates},
            }
        found.append(_pool(f"{kind.name}-{price_list}", spec))
    return found


def pair_document(chips: int, model: str) -> dict[str, Any]:
    """The pool of all chips together."""
    return _pool(
        "pair-2",
        {
            "accelerator": CHIPS[model][0],
            "chipsPerNode": chips,
            "resourceName": f"{DOMAIN}/pair-2",
            "nodeSelector": {"kubernetes.io/hostname": NODE_NAME},
            "price": {"perChipHour": "3"},
        },
    )


def _pool(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "rightpool.dev/v1alpha1",
        "kind": "AcceleratorPool",
        "metadata": {"name": name},
        "spec": spec,
    }


def offers(chips: int) -> list[gpu.Offer]:
    """What the node offers: each kind in each price list, and all chips together."""
    found = [
        gpu.Offer(f"{DOMAIN}/{kind.name}-{number}", (chip_of(number, chips),), kind.percent)
        for number in range(PRICE_LISTS)
        for kind in KINDS
    ]
    return [*found, gpu.Offer(f"{DOMAIN}/pair-2", tuple(range(chips)))] if chips > 1 else found
