"""The JSON schema of what commands print with `-o json` and `-o yaml`: one definition for each `kind`.

Parts of a status come from its CustomResourceDefinition, with numbers where the API has decimal texts.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Final

from rightpool.api import crd, units
from rightpool.api.action import Action
from rightpool.api.choices import AdaptationMode, Objective
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry
from rightpool.api.migration import BatchPromise, Migration
from rightpool.api.placement import CapacityType
from rightpool.api.premise import Premise
from rightpool.api.program_edit import EditVerdict
from rightpool.api.record import Record
from rightpool.api.resources import RESOURCES
from rightpool.api.revision import Revision
from rightpool.api.status import PlaceSize, Recommendation, ServerStatus
from rightpool.api.trace import TraceMemory, TraceSpread
from rightpool.api.traits import ModelTraits
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.explain import ELIGIBLE
from rightpool.cli.explained import ServingVerdict
from rightpool.cli.report import BY
from rightpool.contract import GROUP, VERSION
from rightpool.hardware.accelerator import Figures, FigureSource
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.profiles.bottleneck import Bottleneck
from rightpool.profiles.profile import Steadiness
from rightpool.profiles.sample import Quality
from rightpool.simulation.fleet_figures import FIGURES
from tools.chartdocs.comparison_schema import COMPARISON
from tools.chartdocs.json_schema import Schema, list_of, object_of, one_of, or_null
from tools.chartdocs.moves_schema import fleet_moves, recommendations

_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT}
_NUMBER: Final[Schema] = {"type": "number"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_SHARE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_DAY: Final[Schema] = {"type": "string", "format": "date"}
_NUMBERS: Final[Schema] = {"type": "object", "additionalProperties": _NUMBER}

_DECIMALS: Final = (
    units.Quantity,
    units.SignedQuantity,
    units.Figure,
    units.Dollars,
    units.Balance,
    units.Seconds,
    units.Share,
)
_ESTIMATE: Final = frozenset({"median", "low", "high", "sd"}) | Premise.names_of(units.Quantity)


_UNIT: Final = one_of(WorkUnit)
# Of a status's part: the API leaves them out where they are as usual, documents never.
_ALWAYS: Final = {"capacity": one_of(CapacityType), "unit": _UNIT}

_BY_POOL: Final[Schema] = {"type": "object", "additionalProperties": _NUMBER}
_RANGE: Final[Schema] = object_of(mean=_NUMBER, low=_NUMBER, high=_NUMBER)
_RANGES: Final = {
    **dict.fromkeys(FIGURES, _RANGE),
    "chipHours": {"type": "object", "additionalProperties": _RANGE},
}
_PLAYED: Final[Schema] = object_of(unfinished=_COUNT, **_RANGES)


def _document(kind: str, **properties: Schema) -> Schema:
    return object_of(apiVersion={"const": f"{GROUP}/{VERSION}"}, kind={"const": kind}, **properties)


def _decimals(*kinds: type[Record]) -> frozenset[str]:
    """Wire names of what the API writes as a decimal text."""
    return _ESTIMATE.union(*(kind.names_of(unit) for kind in kinds for unit in _DECIMALS))


def _of_status(part: str, *kinds: type[Record]) -> Schema:
    """A part of a ProfiledJob's status, as `status_document` makes it."""
    return _plain(_status()[part], _decimals(*kinds))


@cache
def _status() -> Schema:
    """The parts of a ProfiledJob's status. Made once: it takes a tenth of a second, and each kind has several."""
    resource = next(each for each in RESOURCES if each.kind == "ProfiledJob")
    (version,) = crd.definition(resource)["spec"]["versions"]
    return dict(version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"])


def _plain(schema: Schema, decimals: frozenset[str]) -> Schema:
    made = {key: value for key, value in schema.items() if key in {"type", "enum", "format", "required", "minimum"}}
    if made.get("format") == "int64":
        del made["format"]
    if "items" in schema:
        made["items"] = _plain(schema["items"], decimals)
    if "properties" in schema:
        made["properties"] = {
            name: _NUMBER if name in decimals and each.get("type") == "string" else _plain(each, decimals)
            for name, each in schema["properties"].items()
        }
        made["additionalProperties"] = False
        always = {name: each for name, each in _ALWAYS.items() if name in made["properties"]}
        if always:
            made["properties"] |= always
            made["required"] = sorted({*made.get("required", ()), *always})
    elif schema.get("type") == "object":
        made["additionalProperties"] = _NUMBER
    return made


def _defined(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


_PLACE: Final = _defined("Placement")
_REASON: Final = _defined("Reason")
_DECISION: Final = _defined("Decision")
_CANDIDATE: Final = _defined("Candidate")
_ENTRY: Final = _defined("LedgerEntry")
_SERVER: Final = _defined("ServingCandidate")
_FIGURES: Final = one_of([one.value for one in Figures])
_RATES: Final[Schema] = {"teraflops": _NUMBERS, "memoryGigabytesPerSecond": _NUMBER}
_BOTTLENECK: Final = object_of(**{"class": one_of(Bottleneck)}, evidence=or_null(_TEXT), lever=or_null(_TEXT))
_CHARGE: Final = dict.fromkeys(("spent", "saved", "savedLow", "savedHigh", "chipHours"), _NUMBER) | {
    "goodput": or_null(_SHARE)
}
# Of pools and days of all namespaces.
_POOL_COSTS: Final = dict.fromkeys(("poolCost", "idle", "others"), _NUMBER)


def _may_have(optional: dict[str, Schema], **always: Schema) -> Schema:
    return object_of(**always, **optional) | {"required": list(always)}


def parts() -> dict[str, Schema]:
    """What several kinds of documents hold."""
    entry = _of_status("history", LedgerEntry)["items"]
    size = {"type": "integer", "minimum": 1}
    place = object_of(pool=_TEXT, chips=size, replicas=size, capacity=one_of(CapacityType))
    interval = {"median": _NUMBER, "low": _NUMBER, "high": _NUMBER}
    candidate = object_of(
        **place["properties"],
        throughput=or_null(object_of(**interval, basis=_TEXTS)),
        unit=_UNIT,
        costPerHour=or_null(_NUMBER),
        costPerMillion=or_null(object_of(**interval)),
        scalingEfficiency=or_null(_NUMBER),
        modelFlopsUtilization=or_null(_NUMBER),
        saving=or_null(_NUMBER),
        probability=or_null(_SHARE),
        variant=or_null(_TEXT),
        verdict=one_of([ELIGIBLE, *RejectionReason]),
        message=or_null(_TEXT),
    )
    latency = or_null(object_of(**{end: or_null(_NUMBER) for end in interval}))  # null: no upper end
    server = object_of(
        **place["properties"],
        servable=or_null(object_of(**interval)),
        replicasNeeded=or_null(_COUNT),
        p50=latency,
        p99=latency,
        alone=latency,
        probability=or_null(_SHARE),
        costPerHour=or_null(_NUMBER),
        costPerMillionRequests=or_null(_NUMBER),
        verdict=one_of(ServingVerdict),
        message=or_null(_TEXT),
    )
    decision = object_of(action=one_of(Action), reason=_REASON, message=_TEXT, target=or_null(_PLACE))
    return {
        "Reason": one_of(Reason),
        "Placement": place,
        "Candidate": candidate,
        "Decision": decision,
        "LedgerEntry": entry,
        "ServingCandidate": server,
    }


def kinds() -> dict[str, Schema]:
    """The schema of each kind of document."""
    made = [
        _document(
            "JobReport",
            asOf=_TIME,
            notes=_TEXTS,
            jobs=list_of(
                object_of(
                    namespace=_TEXT,
                    name=_TEXT,
                    state=_TEXT,
                    pool=or_null(_TEXT),
                    chips=or_null(_COUNT),
                    capacity=or_null(one_of(CapacityType)),
                    throughput=or_null(_NUMBER),
                    unit=or_null(_UNIT),
                    costPerHour=or_null(_NUMBER),
                    costPerMillion=or_null(_NUMBER),
                    bottleneck=or_null(_TEXT),
                    targets=or_null(_REASON),
                    progress=or_null(_SHARE),
                    finishAt=or_null(_TIME),
                    secondsLeft=or_null(_NUMBER),
                    dollarsLeft=or_null(_NUMBER),
                    goesTo=or_null(_PLACE),
                    savings=or_null(_NUMBER),
                    potentialSavingsPerHour=or_null(_NUMBER),
                    spent=or_null(_NUMBER),
                    saved=or_null(_NUMBER),
                    promisedPerMillion=or_null(_NUMBER),
                    deliveredPerMillion=or_null(_NUMBER),
                    promisedUnit=or_null(_UNIT),
                )
            ),
            total=object_of(
                jobs=_COUNT,
                running=_COUNT,
                chips=_COUNT,
                costPerHour=_NUMBER,
                potentialSavingsPerHour=_NUMBER,
                spent=_NUMBER,
                saved=_NUMBER,
                unpriced=_COUNT,
            ),
        ),
        _document(
            "Explanation",
            asOf=_TIME,
            notes=_TEXTS,
            job=object_of(
                namespace=_TEXT,
                name=_TEXT,
                state=_TEXT,
                objective=one_of(Objective),
                adaptation=one_of(AdaptationMode),
            ),
            targets=object_of(
                met=or_null({"type": "boolean"}),
                reason=or_null(_REASON),
                message=or_null(_TEXT),
                progress=or_null(_SHARE),
                finishAt=or_null(_TIME),
                secondsLeft=or_null(_NUMBER),
                dollarsLeft=or_null(_NUMBER),
                late=or_null(_SHARE),
                over=or_null(_SHARE),
            ),
            placement=or_null(_of_status("placement", Revision)),
            profile=or_null(
                object_of(
                    quality=_TEXT,
                    window=or_null(_TEXT),
                    measuredAt=or_null(_TIME),
                    values=_NUMBERS,
                    missing=_TEXTS,
                )
            ),
            bottleneck=or_null(_BOTTLENECK),
            current=or_null(_CANDIDATE),
            candidates=list_of(_CANDIDATE),
            decision=_DECISION,
            evaluatedNow=or_null(_DECISION),
            outbid=or_null(object_of(pool=_TEXT, chips=_COUNT, worthPerHour=_NUMBER, gainPerHour=_NUMBER)),
            edit=or_null(
                object_of(
                    **{"from": or_null(_TEXT)}, verdict=one_of(EditVerdict), ratio=or_null(_NUMBER), message=_TEXT
                )
            ),
            migration=or_null(_of_status("migration", Migration, Revision, BatchPromise)),
            recommendation=or_null(_of_status("recommendation", Recommendation)),
            cost=or_null(
                object_of(
                    perHour=or_null(_NUMBER),
                    spent=_NUMBER,
                    saved=_NUMBER,
                    savedRange=object_of(low=_NUMBER, high=_NUMBER),
                    goodput=or_null(_SHARE),
                )
            ),
            history=list_of(_ENTRY),
            server=or_null(_of_status("server", ServerStatus, PlaceSize)),
            serving=or_null(
                object_of(
                    requestsPerSecond=_NUMBER,
                    p99Limit=_NUMBER,
                    batch=or_null(_COUNT),
                    reason=or_null(one_of(ServingVerdict)),
                    message=or_null(_TEXT),
                    candidates=list_of(_SERVER),
                )
            ),
        ),
        _document(
            "JobProfile",
            asOf=_TIME,
            notes=_TEXTS,
            job=object_of(namespace=_TEXT, name=_TEXT, state=_TEXT),
            profile=or_null(
                object_of(
                    quality=_TEXT, steadiness=one_of(Steadiness), window=or_null(_TEXT), measuredAt=or_null(_TIME)
                )
            ),
            fields=list_of(object_of(name=_TEXT, value=_NUMBER, unit=_TEXT, quality=one_of(Quality), origin=_TEXT)),
            step=list_of(object_of(part=_TEXT, share=_SHARE)),
            ranks=or_null(_of_status("trace", TraceSpread)["properties"]["ranks"]),
            memory=or_null(_of_status("trace", TraceMemory)["properties"]["summary"]["properties"]["memory"]),
            bottleneck=or_null(_BOTTLENECK),
            model=or_null(_of_status("profile", ModelTraits)["properties"]["model"]),
            missing=list_of(object_of(name=_TEXT, reason=_TEXT)),
        ),
        _document(
            "ExplanationList",
            asOf=_TIME,
            notes=_TEXTS,
            items=list_of(object_of(namespace=_TEXT, name=_TEXT, state=_TEXT, decision=_DECISION)),
        ),
        _document(
            "PoolReport",
            asOf=_TIME,
            notes=_TEXTS,
            pools=list_of(
                object_of(
                    name=_TEXT,
                    accelerator=_TEXT,
                    figures=_FIGURES,
                    declaredIn=or_null(_TEXT),
                    measuredAt=or_null(_TIME),
                    nodes=_COUNT,
                    chips=object_of(total=_COUNT, free={"type": "integer"}, growable=_COUNT),
                    chipsPerNode=_COUNT,
                    slice=or_null(object_of(topology=_TEXT, chips=_COUNT)),
                    pricePerChipHour=or_null(_NUMBER),
                    spotPricePerChipHour=or_null(_NUMBER),
                    worthPerChipHour=or_null(_NUMBER),
                    idlePerHour=or_null(_NUMBER),
                    priceSource=or_null(one_of([source.value for source in FigureSource])),
                    source=one_of(["declared", "discovered"]),
                    problems=_TEXTS,
                )
            ),
            total=object_of(perHour=_NUMBER, usedPerHour=_NUMBER, idlePerHour=_NUMBER, unpriced=_TEXTS),
            problems=list_of(object_of(pool=or_null(_TEXT), message=_TEXT)),
        ),
        _document(
            "AcceleratorList",
            items=list_of(
                object_of(
                    key=_TEXT,
                    vendor=_TEXT,
                    figures=_FIGURES,
                    declaredIn=or_null(_TEXT),
                    memoryGigabytes=_NUMBER,
                    memoryGigabytesPerSecond=_NUMBER,
                    watts=or_null(_NUMBER),
                    pricePerChipHour=or_null(_NUMBER),
                    spotPricePerChipHour=or_null(_NUMBER),
                    priceSource=or_null(one_of([source.value for source in FigureSource])),
                )
            ),
        ),
        _document("RecommendationList", asOf=_TIME, notes=_TEXTS, **recommendations(_PLACE, _REASON)),
        _document("FleetMoveList", asOf=_TIME, notes=_TEXTS, **fleet_moves(_PLACE)),
        _document(
            "History",
            asOf=_TIME,
            items=list_of(object_of(namespace=_TEXT, name=_TEXT, entry=_ENTRY)),
        ),
        _document(
            "ChargebackReport",
            asOf=_TIME,
            since=_DAY,
            bookedUntil=or_null(_TIME),
            notes=_TEXTS,
            by=one_of(BY),
            rows={"type": "array", "items": {"anyOf": [_may_have(_POOL_COSTS, **{by: _TEXT}, **_CHARGE) for by in BY]}},
            total=_may_have(_POOL_COSTS, **_CHARGE),
        ),
        _document(
            "SimulationReport",
            notes=_TEXTS,
            jobs=_COUNT,
            **{"from": _TIME, "to": _TIME},
            check=object_of(
                jobs=_COUNT,
                moved=_COUNT,
                completion=or_null(_NUMBER),
                chipHours=or_null(_NUMBER),
                nineInTen=or_null(_NUMBER),
                planned=object_of(dollars=_NUMBER, completion=_NUMBER),
                holds={"type": "boolean"},
            ),
            asItWas=object_of(jobs=_COUNT, unfinished=_COUNT, **dict.fromkeys(FIGURES, _NUMBER), chipHours=_BY_POOL),
            planned=_PLAYED,
            whatIf=or_null(_PLAYED),
            difference=or_null(object_of(**_RANGES)),
        ),
        _document("Comparison", **COMPARISON),
        _document("Advice", better={"type": "boolean"}, sbatch=or_null(_TEXT), comparison=_defined("Comparison")),
        _document(
            "Calibration",
            pool=_TEXT,
            calibration=object_of(
                accelerator=_TEXT,
                measuredAt=_TIME,
                reason=_REASON,
                message=_TEXT,
                device=_TEXT,
                software=_TEXT,
                node=_TEXT,
                chips=_COUNT,
                **_RATES,
                allReduce=list_of(object_of(chips=_COUNT, gigabytesPerSecond=_NUMBER)),
            )
            | {"required": ["accelerator", "measuredAt", "reason", "message", "device", "software", "node", "chips"]},
            dataSheet=object_of(**_RATES | {"memoryGigabytesPerSecond": or_null(_NUMBER)}),
        ),
    ]
    return {str(each["properties"]["kind"]["const"]): each for each in made}


def schema(*wanted: str) -> Schema:
    """The schema of documents of these kinds; of all by default."""
    found = kinds()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What the commands of rightpool print with -o json and -o yaml",
        "anyOf": [_defined(kind) for kind in wanted or found],
        "$defs": parts() | found,
    }


def text() -> str:
    """As it is written to docs/cli.schema.json."""
    return json.dumps(schema(), indent=1) + "\n"
