"""Rejections of pools and sizes: what the spec alone rules out, whatever the job does."""

from dataclasses import dataclass

from rightpool.api.choices import Capacity
from rightpool.api.placement import CapacityType
from rightpool.hardware.vendors.vendor import Vendor
from rightpool.planning.evaluate.rejection import Rejection, RejectionReason

# --- the pool as a whole ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PoolDenied(Rejection):
    """In placement.pools.deny."""

    reason = RejectionReason.POOL_DENIED
    pool: str


@dataclass(frozen=True, slots=True)
class PoolNotAllowed(Rejection):
    """Not in placement.pools.allow."""

    reason = RejectionReason.POOL_DENIED
    pool: str
    allow: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolNotSelected(Rejection):
    """Without the labels of placement.pools.selector."""

    reason = RejectionReason.POOL_DENIED
    pool: str
    wanted: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class OtherVendor(Rejection):
    """Chips that the template is not known to run on. known: the vendor that it is taken to run on."""

    reason = RejectionReason.VENDOR_NOT_DECLARED
    pool: str
    vendor: Vendor
    known: Vendor


@dataclass(frozen=True, slots=True)
class VariantRefused(Rejection):
    """Chips of a vendor whose variant can't be used. refusal: the API server's words, with the field."""

    reason = RejectionReason.VARIANT_REFUSED
    pool: str
    vendor: Vendor
    refusal: str


@dataclass(frozen=True, slots=True)
class SelectorContradicted(Rejection):
    """The pool's nodes have another value of a label than the template's nodeSelector."""

    reason = RejectionReason.NODE_SELECTOR
    pool: str
    key: str
    given: str
    wanted: str


@dataclass(frozen=True, slots=True)
class SelectorUnmatched(Rejection):
    """No node of the pool has these labels of the template's nodeSelector."""

    reason = RejectionReason.NODE_SELECTOR
    pool: str
    missing: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CapacityNotWanted(Rejection):
    """Bought in another way than placement.capacity says."""

    reason = RejectionReason.CAPACITY_TYPE
    wanted: Capacity
    capacity: CapacityType


@dataclass(frozen=True, slots=True)
class NoSpot(Rejection):
    """The pool sells no spot capacity."""

    reason = RejectionReason.CAPACITY_TYPE
    pool: str


# --- the size --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SizeNotListed(Rejection):
    """Not one of elasticity.chipCounts."""

    reason = RejectionReason.SIZE_NOT_OFFERED
    chips: int
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SizeNotMultiple(Rejection):
    """Not a multiple of elasticity.modelParallel.tensor × pipeline."""

    reason = RejectionReason.SIZE_NOT_OFFERED
    chips: int
    tensor: int
    pipeline: int


@dataclass(frozen=True, slots=True)
class TensorSplit(Rejection):
    """Groups of `tensor` chips do not fit in pods, or slices, of `fast` chips."""

    reason = RejectionReason.TENSOR_SPLIT
    pool: str
    fast: int
    tensor: int
    slices: bool


@dataclass(frozen=True, slots=True)
class SizeOutOfBounds(Rejection):
    """Outside elasticity.minChips to maxChips."""

    reason = RejectionReason.SIZE_NOT_OFFERED
    chips: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class NoSize(Rejection):
    """The pool gives no size between low and high. unit: chips of a slice or of a node; reach: chips at most; pods: how
    many there have to be and with how many chips, where the size is fixed; parts: whether its chips are MIG slices;
    multiple: what sizes must be multiples of."""

    reason = RejectionReason.SIZE_NOT_OFFERED
    pool: str
    slices: bool
    unit: int
    reach: int
    low: int
    high: int
    pods: tuple[int, int] | None = None
    parts: bool = False
    multiple: int = 1
