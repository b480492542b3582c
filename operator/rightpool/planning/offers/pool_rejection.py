"""Rejections of pools and sizes: what the spec alone rules out, whatever the job does."""

from rightpool.api.choices import Capacity
from rightpool.api.placement import CapacityType
from rightpool.api.value_object import value_object
from rightpool.api.wording import chips, how_many
from rightpool.hardware.node import Taint
from rightpool.hardware.node_needs import Terms, format_amount, in_words
from rightpool.hardware.vendors.vendor import Vendor
from rightpool.planning.offers.rejection import RejectionReason, RuledOut

# --- the pool as a whole ---------------------------------------------------------------------------------------------


@value_object
class PoolDenied(RuledOut):
    """In placement.pools.deny."""

    reason = RejectionReason.POOL_DENIED
    pool: str
    """Name of the AcceleratorPool."""

    def text(self) -> str:
        return f"{self.pool} is in placement.pools.deny: remove it there to use it"


@value_object
class PoolNotAllowed(RuledOut):
    """Not in placement.pools.allow."""

    reason = RejectionReason.POOL_DENIED
    pool: str
    """Name of the AcceleratorPool."""
    allow: tuple[str, ...]
    """Names of the pools that are allowed."""

    def text(self) -> str:
        allow = ", ".join(self.allow)
        return f"{self.pool} is not in placement.pools.allow ({allow}): add it there to use it"


@value_object
class PoolNotSelected(RuledOut):
    """Without the labels of placement.pools.selector."""

    reason = RejectionReason.POOL_DENIED
    pool: str
    """Name of the AcceleratorPool."""
    wanted: tuple[tuple[str, str], ...]
    """The selector's labels, with their values."""

    def text(self) -> str:
        wanted = ", ".join(f"{key}={value}" for key, value in self.wanted)
        lacks = f"{self.pool} lacks the labels of placement.pools.selector ({wanted})"
        return f"{lacks}: label the AcceleratorPool to use it"


@value_object
class OtherVendor(RuledOut):
    """Chips that the template is not known to run on."""

    reason = RejectionReason.VENDOR_NOT_DECLARED
    pool: str
    """Name of the AcceleratorPool."""
    vendor: Vendor
    """Who made them."""
    known: Vendor
    """Whose chips the template is taken to run on."""

    def text(self) -> str:
        return (
            f"{self.pool} has {self.vendor} chips, and the template is for {self.known}: name the pool in "
            "placement.pools.allow, or add a variant"
        )


@value_object
class VariantRefused(RuledOut):
    """Chips of a vendor whose variant can't be used."""

    reason = RejectionReason.VARIANT_REFUSED
    pool: str
    """Name of the AcceleratorPool."""
    vendor: Vendor
    """Who makes its chips, and whom the variant is for."""
    refusal: str
    """The API server's words, with the field."""

    def text(self) -> str:
        return f"{self.pool} has {self.vendor} chips, and their variant can't be used: {self.refusal}"


@value_object
class SelectorContradicted(RuledOut):
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

    def text(self) -> str:
        return (
            f"template.spec.nodeSelector asks for {self.key}={self.wanted}, and {self.pool} has {self.given}: remove "
            "it there"
        )


@value_object
class SelectorUnmatched(RuledOut):
    """No node of the pool has these labels of the template's nodeSelector."""

    reason = RejectionReason.NODE_SELECTOR
    pool: str
    """Name of the AcceleratorPool."""
    missing: tuple[tuple[str, str], ...]
    """Labels with their values; all that the template asks for where each is on some nodes and no node has all."""

    def text(self) -> str:
        missing = " and ".join(f"{key}={value}" for key, value in self.missing)
        return (
            f"no node of {self.pool} has {missing}, which template.spec.nodeSelector asks for: label them, or remove it"
        )


@value_object
class AffinityUnmatched(RuledOut):
    """No node of the pool meets the template's required node affinity."""

    reason = RejectionReason.NODE_SELECTOR
    pool: str
    """Name of the AcceleratorPool."""
    terms: Terms
    """As the template has it."""

    def text(self) -> str:
        return f"no node of {self.pool} meets {in_words(self.terms)} of template.spec.affinity.nodeAffinity: widen it"


@value_object
class VolumeElsewhere(RuledOut):
    """A volume of the job can't be used on any node of the pool."""

    reason = RejectionReason.VOLUME_ELSEWHERE
    pool: str
    """Name of the AcceleratorPool."""
    terms: Terms
    """Where it can be used."""

    def text(self) -> str:
        return (
            f"no node of {self.pool} has {in_words(self.terms)}, where a volume of template.spec.volumes is: use one "
            "that can follow"
        )


@value_object
class NodesShort(RuledOut):
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

    def text(self) -> str:
        asked, most = (format_amount(self.resource, amount) for amount in (self.asked, self.most))
        return (
            f"Insufficient {self.resource}: a pod requests {asked} with its profiler, and nodes of {self.pool} have "
            f"{most} at most: request less"
        )


@value_object
class NodesTainted(RuledOut):
    """The nodes that would do have a taint that neither the pool nor the template tolerates."""

    reason = RejectionReason.NODE_TAINTED
    pool: str
    """Name of the AcceleratorPool."""
    taint: Taint
    """What keeps the pods away."""

    def text(self) -> str:
        taint = f"{self.taint.key}={self.taint.value}:{self.taint.effect}"
        return f"nodes of {self.pool} have the taint {taint}: tolerate it in the template or in the pool's spec"


@value_object
class CapacityNotWanted(RuledOut):
    """Bought in another way than placement.capacity says."""

    reason = RejectionReason.CAPACITY_TYPE
    wanted: Capacity
    """What placement.capacity says: on demand, spot or any."""
    capacity: CapacityType
    """How the placement would be bought."""

    def text(self) -> str:
        return f"placement.capacity is {self.wanted}, which rules out {self.capacity}: Any allows both"


@value_object
class NoSpot(RuledOut):
    """The pool sells no spot capacity."""

    reason = RejectionReason.CAPACITY_TYPE
    pool: str
    """Name of the AcceleratorPool."""

    def text(self) -> str:
        return f"{self.pool} has no spot capacity: set placement.capacity to OnDemand or Any to use it"


@value_object
class NotKeptApart(RuledOut):
    """Nodes without the label by which units of pods are kept apart."""

    reason = RejectionReason.NODE_SELECTOR
    pool: str
    """Name of the AcceleratorPool."""
    label: str
    """Name of the label."""

    def text(self) -> str:
        return f"no node of {self.pool} has {self.label}, by which exclusive-topology keeps pods apart: label them"


@value_object
class SlicesApart(RuledOut):
    """More chips than a slice of several hosts has."""

    reason = RejectionReason.SLICES_APART
    pool: str
    """Name of the AcceleratorPool."""
    hosts: int
    """Of a slice."""
    chips: int
    """Of a slice."""
    label: str
    """Whose value the hosts of one slice have in common."""

    def text(self) -> str:
        return (
            f"a slice of {self.pool} has {self.hosts} hosts and {chips(self.chips)}: several need a JobSet with "
            f"exclusive-topology {self.label}"
        )


@value_object
class ObjectUnchangeable(RuledOut):
    """The adopted object may not be suspended, and so not be changed."""

    reason = RejectionReason.OBJECT_UNCHANGEABLE
    why: str
    """What is in the way, with the remedy."""

    def text(self) -> str:
        return self.why


@value_object
class CapacityNotSelectable(RuledOut):
    """Nodes of both kinds, and nothing that can be set of the adopted object tells them apart."""

    reason = RejectionReason.CAPACITY_NOT_SELECTABLE
    pool: str
    """Name of the AcceleratorPool."""
    kind: str
    """What Kubernetes calls the object."""

    def text(self) -> str:
        return (
            f"{self.pool} mixes spot and on-demand nodes, which a {self.kind} can't tell apart: "
            "name one in the nodeSelector of a pool"
        )


# --- the size --------------------------------------------------------------------------------------------------------


@value_object
class SizeNotListed(RuledOut):
    """Not one of elasticity.chipCounts."""

    reason = RejectionReason.SIZE_NOT_OFFERED
    chips: int
    """As many as the placement has."""
    counts: tuple[int, ...]
    """elasticity.chipCounts."""

    def text(self) -> str:
        offered = ", ".join(str(count) for count in self.counts)
        return f"a size of {chips(self.chips)} is not in elasticity.chipCounts ({offered})"


@value_object
class SizeNotMultiple(RuledOut):
    """Not a multiple of elasticity.modelParallel.tensor × pipeline."""

    reason = RejectionReason.SIZE_NOT_OFFERED
    chips: int
    """As many as the placement has."""
    tensor: int
    """Chips that hold one layer."""
    pipeline: int
    """Stages, each of `tensor` chips."""

    def text(self) -> str:
        group = self.tensor * self.pipeline
        return (
            f"{chips(self.chips)} are no multiple of the {group} that hold the model "
            f"(elasticity.modelParallel {self.tensor} × {self.pipeline})"
        )


@value_object
class TensorSplit(RuledOut):
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

    def text(self) -> str:
        fast = f"{self.fast} chips of a {'slice' if self.slices else 'pod'}"
        return (
            f"{self.pool} links {fast}, which are no groups of {self.tensor}: lower "
            "elasticity.modelParallel.tensor, or set chipsPerReplica"
        )


@value_object
class SizeOutOfBounds(RuledOut):
    """Outside elasticity.minChips to maxChips."""

    reason = RejectionReason.SIZE_NOT_OFFERED
    chips: int
    """As many as the placement has."""
    low: int
    """Fewest chips that the job may have."""
    high: int
    """Most chips that it may have."""

    def text(self) -> str:
        if self.low == self.high:
            return (
                f"the spec asks for {chips(self.low)} and not for {self.chips}: to allow other sizes, "
                "set elasticity.minChips, maxChips and batch"
            )
        bounds = f"elasticity.minChips {self.low} to maxChips {self.high}"
        return f"a size of {chips(self.chips)} is outside {bounds}"


@value_object
class NoSize(RuledOut):
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

    def text(self) -> str:
        if not self.reach:
            return f"{self.pool} has no chips for a job: look at its nodes with rightpool pools"
        if self.parts:
            return (
                f"{self.pool} gives MIG slices, of which a job gets one: if it can run on one, set elasticity.minChips "
                "1, and batch"
            )
        whole = f"slices of {self.unit}" if self.slices else f"nodes of {self.unit}"
        if self.pods is not None:
            count, each = self.pods
            return (
                f"{self.pool} gives {whole}, {self.reach} at most, and no {how_many(count, 'pod')} of {chips(each)}: "
                "set elasticity.minChips, maxChips and batch"
            )
        multiple = "" if self.multiple == 1 else f" in multiples of {self.multiple}"
        return (
            f"{self.pool} gives {whole}, {self.reach} at most, and no {self.low} to {self.high} chips{multiple}: "
            "change elasticity.minChips"
        )


@value_object
class SizeKept(RuledOut):
    """Another size than an adopted object has, whose kind lets no size change."""

    reason = RejectionReason.SIZE_NOT_OFFERED
    kind: str
    """What Kubernetes calls the object."""
    pods: int
    """As many as it has."""
    each: int
    """Chips of each."""
    anew: bool = False
    """Whether the operator could make it anew."""

    def text(self) -> str:
        remedy = "set adoption.change to Recreate" if self.anew else "make it anew"
        return (
            f"a {self.kind} keeps its {how_many(self.pods, 'pod')} of {chips(self.each)} where it is adopted: "
            f"to resize it, {remedy}"
        )
