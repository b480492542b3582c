"""The three kinds of the API: their names, columns, subresources and the rules about their names."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final

from pydantic import BaseModel

from rightpool.api.placement import MAX_REPLICAS
from rightpool.api.policy import POLICY_NAME, PlacementPolicySpec, PlacementPolicyStatus
from rightpool.api.pool import AcceleratorPoolSpec, AcceleratorPoolStatus
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.record import Record
from rightpool.api.revision import MAX_REVISION
from rightpool.api.rules import Rule
from rightpool.api.status import ProfiledJobStatus
from rightpool.api.value_object import value_object

# The child of revision N is `<name>-r<N>`: a Job, and a headless Service of the same name, which must be a DNS label
# that begins with a letter. Its pods' host names are `<name>-r<N>-<index>`, and a host name is a DNS label too: at most
# 63 characters. With five digits for N and four for the index, 12 are reserved. The pod's own name adds five random
# characters, before which the API server shortens by itself.
_SUFFIX: Final = f"-r{MAX_REVISION}-{MAX_REPLICAS - 1}"
MAX_NAME: Final = 63 - len(_SUFFIX)
PROFILED_JOB_NAME: Final = re.compile(f"^[a-z]([-a-z0-9]{{0,{MAX_NAME - 2}}}[a-z0-9])?$")
"""Names of ProfiledJobs."""


@value_object
class PrinterColumn:
    """A column of `kubectl get`."""

    name: str
    """Its heading."""
    path: str
    """JSONPath of the value, from the object."""
    type: str = "string"
    """As OpenAPI names it: string, integer, number, boolean or date."""
    description: str = ""
    """The description in the CRD, which `kubectl explain` shows; empty for none."""
    wide: bool = False
    """Whether it needs `-o wide`."""


@value_object
class Scale:
    """JSONPaths of the scale subresource."""

    spec_replicas: str
    """Of the number that `kubectl scale` writes."""
    status_replicas: str
    """Of the number that runs now."""
    selector: str
    """Of the field with the label selector of the pods, as text."""


@value_object
class CustomResource:
    """A kind that a CustomResourceDefinition of ours defines."""

    kind: str
    """As in an object's `kind`."""
    plural: str
    """As in a path."""
    singular: str
    """As kubectl takes it."""
    short_names: tuple[str, ...]
    """As kubectl takes them, too."""
    namespaced: bool
    """Whether its objects belong to a namespace."""
    description: str
    """One sentence, which the CRD's schema begins with."""
    spec: type[BaseModel]
    """The model of `spec`."""
    status: type[BaseModel] | type[Record]
    """The type of `status`."""
    rules: tuple[Rule, ...]
    """About the object as a whole."""
    columns: tuple[PrinterColumn, ...]
    """Of `kubectl get`, beside the name."""
    scale: Scale | None = None
    """None where `kubectl scale` does not apply."""
    categories: tuple[str, ...] = field(default=("ml",))
    """Names that `kubectl get` takes for several kinds."""


_AGE: Final = PrinterColumn("Age", ".metadata.creationTimestamp", "date", "Time since the object was created.")

PROFILED_JOB: Final = CustomResource(
    kind="ProfiledJob",
    plural="profiledjobs",
    singular="profiledjob",
    short_names=("pj",),
    namespaced=True,
    description="An ML job that is profiled while it runs, and moved to the chips that do its work best for the money.",
    spec=ProfiledJobSpec,
    status=ProfiledJobStatus,
    rules=(
        Rule(
            f"self.metadata.name.matches('{PROFILED_JOB_NAME.pattern}')",
            f"must have at most {MAX_NAME} characters, only a-z, 0-9 and '-', and begin with a letter, "
            f"because children are named after it with up to {len(_SUFFIX)} more ({_SUFFIX}) and may have 63: "
            "choose a shorter or plainer name",
            field=".metadata.name",
        ),
    ),
    columns=(
        PrinterColumn(
            "Status",
            ".status.conditions[?(@.type=='Placed')].reason",
            description="Whether the job runs, and why not: the reason of Placed.",
        ),
        PrinterColumn("Pool", ".status.placement.pool", description="AcceleratorPool that the job is placed on."),
        PrinterColumn("Chips", ".status.cost.chips", "integer", "Chips that its pods hold now."),
        PrinterColumn("Bottleneck", ".status.summary.bottleneck", description="What limits the job now."),
        PrinterColumn("$/h", ".status.summary.perHour", description="Dollars an hour now."),
        PrinterColumn(
            "$/M", ".status.summary.perMillion", description="Dollars for a million samples, steps or requests now."
        ),
        PrinterColumn(
            "Saved", ".status.summary.saved", description="Dollars saved against staying where the job started."
        ),
        PrinterColumn(
            "Targets",
            ".status.conditions[?(@.type=='TargetsMet')].reason",
            description="Whether the declared targets hold, and which does not: the reason of TargetsMet.",
        ),
        PrinterColumn("Done", ".status.summary.progress", description="Share of the samples that are done."),
        PrinterColumn("Would-go-to", ".status.summary.goesTo", description="Where the job should be moved."),
        PrinterColumn("Saves", ".status.summary.saves", description="Share of the cost that the move would save."),
        PrinterColumn("Phase", ".status.migration.phase", description="Phase of the migration that is under way."),
        PrinterColumn(
            "Samples/s", ".status.summary.samplesPerSecond", description="Samples consumed a second now.", wide=True
        ),
        PrinterColumn(
            "Steps/s",
            ".status.summary.stepsPerSecond",
            description="Optimizer steps a second now, where samples are not seen.",
            wide=True,
        ),
        PrinterColumn(
            "Scaling", ".status.summary.scalingEfficiency", description="Share of perfect scaling now.", wide=True
        ),
        PrinterColumn(
            "Requests/s", ".status.summary.requestsPerSecond", description="Requests a second now.", wide=True
        ),
        PrinterColumn(
            "P99", ".status.summary.p99", description="Time by which 99% of the requests are answered now.", wide=True
        ),
        PrinterColumn(
            "Target",
            ".status.summary.target",
            description="How soon a server must answer, such as p99 50 ms.",
            wide=True,
        ),
        PrinterColumn(
            "Finish", ".status.outlook.finishAt", description="When the job is done at its present rate.", wide=True
        ),
        PrinterColumn("LastMove", ".status.lastMoveAt", "date", "Time since the last move.", wide=True),
        PrinterColumn("Queue", ".spec.queueName", description="LocalQueue of the job.", wide=True),
        _AGE,
    ),
    scale=Scale(".spec.workload.server.replicas.min", ".status.replicas", ".status.selector"),
)

ACCELERATOR_POOL: Final = CustomResource(
    kind="AcceleratorPool",
    plural="acceleratorpools",
    singular="acceleratorpool",
    short_names=("apool",),
    namespaced=False,
    description="Interchangeable nodes with the same chips, links and price.",
    spec=AcceleratorPoolSpec,
    status=AcceleratorPoolStatus,
    rules=(
        Rule(
            "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",
            "must have at most 63 characters, only a-z, 0-9 and '-', because it becomes a label of pods: "
            "choose a shorter or plainer name",
            field=".metadata.name",
        ),
    ),
    columns=(
        PrinterColumn("Accelerator", ".spec.accelerator", description="Key of the catalog."),
        PrinterColumn("Nodes", ".status.nodes", "integer", "Nodes that match."),
        PrinterColumn("Chips", ".status.chips.total", "integer", "Chips that nodes offer."),
        PrinterColumn("Free", ".status.chips.free", "integer", "Chips that nobody requests."),
        PrinterColumn("$/chip-h", ".spec.price.perChipHour", description="Declared price of one chip for an hour."),
        PrinterColumn(
            "Ready", ".status.conditions[?(@.type=='Ready')].status", description="Whether nodes can take pods."
        ),
        PrinterColumn("Max", ".spec.maxChips", "integer", "Chips that an autoscaler can bring the pool to.", wide=True),
        PrinterColumn("Slice", ".spec.slice.topology", description="Shape of one TPU slice.", wide=True),
        PrinterColumn("Resource", ".spec.resourceName", description="Resource that pods request.", wide=True),
        _AGE,
    ),
)

PLACEMENT_POLICY: Final = CustomResource(
    kind="PlacementPolicy",
    plural="placementpolicies",
    singular="placementpolicy",
    short_names=("ppol",),
    namespaced=False,
    description=f"Fleet-wide safety. There is one, called {POLICY_NAME}; without it the defaults hold.",
    spec=PlacementPolicySpec,
    status=PlacementPolicyStatus,
    rules=(
        Rule(
            f"self.metadata.name == '{POLICY_NAME}'",
            f"must be {POLICY_NAME}: there is one policy for the fleet; edit that one",
            field=".metadata.name",
        ),
    ),
    columns=(
        PrinterColumn(
            "Mode", ".spec.defaultAdaptationMode", description="What holds for jobs without adaptation.mode."
        ),
        PrinterColumn("Concurrent", ".spec.maxConcurrentMigrations", "integer", "Most migrations at the same time."),
        PrinterColumn("PerHour", ".spec.maxMovesPerHour", "integer", "Most moves that are begun in an hour."),
        PrinterColumn(
            "Ready",
            ".status.conditions[?(@.type=='Ready')].status",
            description="Whether the policy can be read, and holds.",
        ),
        PrinterColumn(
            "Trusted",
            ".status.conditions[?(@.type=='Trusted')].status",
            description="False where failed moves hold back the whole fleet.",
        ),
        _AGE,
    ),
)

RESOURCES: Final = (PROFILED_JOB, ACCELERATOR_POOL, PLACEMENT_POLICY)
