"""Rejections of pools and sizes: what the spec alone rules out, whatever the job does."""

from dataclasses import dataclass

from rightpool.api.choices import Capacity
from rightpool.api.placement import CapacityType
from rightpool.hardware.node import Taint
from rightpool.hardware.vendors.vendor import Vendor
from rightpool.planning.offers.rejection import Rejection, RejectionReason

# --- the pool as a whole ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PoolDenied(Rejection):
    """In placement.pools.deny."""

    reason = RejectionReason.POOL_DENIED
    pool: str
    """Name of the AcceleratorPool."""


@dataclass(frozen=True, slots=True)
class PoolNotAllowed(Rejection):
    """Not in placement.pools.allow."""

    reason = RejectionReason.POOL_DENIED
    pool: str
    """Name of the AcceleratorPool."""
    allow: tuple[str, ...]
    """Names of the pools that are allowed."""


@dataclass(frozen=True, slots=True)
class PoolNotSelected(Rejection):
    """Without the labels of placement.pools.selector."""

    reason = RejectionReason.POOL_DENIED
    pool: str
    """Name of the AcceleratorPool."""
    wanted: tuple[tuple[str, str], ...]
    """The selector's labels, with their values."""


@dataclass(frozen=True, slots=True)
class OtherVendor(Rejection):
    """Chips that the template is not known to run on."""

    reason = RejectionReason.VENDOR_NOT_DECLARED
    pool: str
    """Name of the AcceleratorPool."""
    vendor: Vendor
    """Who made them."""
    known: Vendor
    """Whose chips the template is taken to run on."""


@dataclass(frozen=True, slots=True)
class VariantRefused(Rejection):
    """Chips of a vendor whose variant can't be used."""

    reason = RejectionReason.VARIANT_REFUSED
    pool: str
    """Name of the AcceleratorPool."""
    vendor: Vendor
    """Who makes its chips, and whom the variant is for."""
    refusal: str
    """The API server's words, with the field."""


@dataclass(frozen=True, slots=True)
class SelectorContradicted(Rejection):
    """The pool's nodes have another value of a label than the template's nodeSelector."""

    reason = RejectionReason.NODE_SELECTOR
    pool: str
    """Name of the AcceleratorPool."""
    key: str
    """Of the label."""
    given: str
    """Its value on the nodes."""
    wanted: str
    """Its value in the template."""


@dataclass(frozen=True, slots=True)
class SelectorUnmatched(Rejection):
    """No node of the pool has these labels of the template's nodeSelector."""

    reason = RejectionReason.NODE_SELECTOR
    pool: str
    """Name of the AcceleratorPool."""
    missing: tuple[tuple[str, str], ...]
    """Labels with their values; all that the template asks for where each is on some nodes and no node has all."""


@dataclass(frozen=True, slots=True)
class AffinityUnmatched(Rejection):
    """No node of the pool meets the template's required node affinity."""

    reason = RejectionReason.NODE_SELECTOR
    pool: str
    """Name of the AcceleratorPool."""
    terms: tuple[str, ...]
    """The alternatives, in words."""


@dataclass(frozen=True, slots=True)
class NodesShort(Rejection):
    """A pod requests more of a resource than any node of the pool has."""

    reason = RejectionReason.NODE_RESOURCES
    pool: str
    """Name of the AcceleratorPool."""
    resource: str
    """Such as memory."""
    asked: int
    """What one pod requests; CPUs in thousandths."""
    most: int
    """The most that a node has allocatable."""


@dataclass(frozen=True, slots=True)
class NodesTainted(Rejection):
    """The nodes that would do have a taint that neither the pool nor the template tolerates."""

    reason = RejectionReason.NODE_TAINTED
    pool: str
    """Name of the AcceleratorPool."""
    taint: Taint
    """What keeps the pods away."""


@dataclass(frozen=True, slots=True)
class CapacityNotWanted(Rejection):
    """Bought in another way than placement.capacity says."""

    reason = RejectionReason.CAPACITY_TYPE
    wanted: Capacity
    """What placement.capacity says: on demand, spot or any."""
    capacity: CapacityType
    """How the placement would be bought."""


@dataclass(frozen=True, slots=True)
class NoSpot(Rejection):
    """The pool sells no spot capacity."""

    reason = RejectionReason.CAPACITY_TYPE
    pool: str
    """Name of the AcceleratorPool."""


# --- the size --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SizeNotListed(Rejection):
    """Not one of elasticity.chipCounts."""

    reason = RejectionReason.SIZE_NOT_OFFERED
    chips: int
    """As many as the placement has."""
    counts: tuple[int, ...]
    """elasticity.chipCounts."""


@dataclass(frozen=True, slots=True)
class SizeNotMultiple(Rejection):
    """Not a multiple of elasticity.modelParallel.tensor × pipeline."""

    reason = RejectionReason.SIZE_NOT_OFFERED
    chips: int
    """As many as the placement has."""
    tensor: int
    """Chips that hold one layer."""
    pipeline: int
    """Stages, each of `tensor` chips."""


@dataclass(frozen=True, slots=True)
class TensorSplit(Rejection):
    """No whole groups of chips that hold one layer can be made on fast links."""

    reason = RejectionReason.TENSOR_SPLIT
    pool: str
    """Name of the AcceleratorPool."""
    fast: int
    """Chips on one fast link: of a pod, or of a slice."""
    tensor: int
    """Chips of a group."""
    slices: bool
    """Whether `fast` are chips of a slice."""


@dataclass(frozen=True, slots=True)
class SizeOutOfBounds(Rejection):
    """Outside elasticity.minChips to maxChips."""

    reason = RejectionReason.SIZE_NOT_OFFERED
    chips: int
    """As many as the placement has."""
    low: int
    """Fewest chips that the job may have."""
    high: int
    """Most chips that it may have."""


@dataclass(frozen=True, slots=True)
class NoSize(Rejection):
    """The pool gives no size that the job may have."""

    reason = RejectionReason.SIZE_NOT_OFFERED
    pool: str
    """Name of the AcceleratorPool."""
    slices: bool
    """Whether it gives whole slices, else whole nodes."""
    unit: int
    """Chips of a slice or of a node."""
    reach: int
    """Chips that it gives one job at most."""
    low: int
    """Fewest chips that the job may have."""
    high: int
    """Most chips that it may have."""
    pods: tuple[int, int] | None = None
    """Where the size is fixed: how many pods there have to be, and with how many chips each. Else None."""
    parts: bool = False
    """Whether its chips are MIG slices, of which a job has one."""
    multiple: int = 1
    """What sizes must be multiples of."""
