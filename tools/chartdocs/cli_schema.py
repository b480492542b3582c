"""The JSON schema of what commands print with `-o json` and `-o yaml`: one definition for each `kind`.

Parts of a status come from its CustomResourceDefinition, with numbers where the API has decimal texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from rightpool.api import crd, units
from rightpool.api.action import Action
from rightpool.api.choices import AdaptationMode, Objective
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry
from rightpool.api.migration import Migration
from rightpool.api.placement import CapacityType
from rightpool.api.premise import Premise
from rightpool.api.record import Record
from rightpool.api.resources import RESOURCES
from rightpool.api.revision import Revision
from rightpool.api.status import Recommendation
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

Schema = dict[str, Any]

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


def _or_null(of: Schema) -> Schema:
    return {"anyOf": [of, {"type": "null"}]}


def _one_of(values: Iterable[str]) -> Schema:
    return {"enum": [str(value) for value in values]}


_UNIT: Final = _one_of(WorkUnit)
# Of a status's part: the API leaves them out where they are as usual, documents never.
_ALWAYS: Final = {"capacity": _one_of(CapacityType), "unit": _UNIT}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _object(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _document(kind: str, **properties: Schema) -> Schema:
    return _object(apiVersion={"const": f"{GROUP}/{VERSION}"}, kind={"const": kind}, **properties)


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
_FIGURES: Final = _one_of([one.value for one in Figures])
_RATES: Final[Schema] = {"teraflops": _NUMBERS, "memoryGigabytesPerSecond": _NUMBER}
_BOTTLENECK: Final = _object(**{"class": _one_of(Bottleneck)}, evidence=_or_null(_TEXT), lever=_or_null(_TEXT))
_CHARGE: Final = dict.fromkeys(("spent", "saved", "savedLow", "savedHigh", "chipHours"), _NUMBER) | {
    "goodput": _or_null(_SHARE)
}


def parts() -> dict[str, Schema]:
    """What several kinds of documents hold."""
    entry = _of_status("history", LedgerEntry)["items"]
    size = {"type": "integer", "minimum": 1}
    place = _object(pool=_TEXT, chips=size, replicas=size, capacity=_one_of(CapacityType))
    interval = {"median": _NUMBER, "low": _NUMBER, "high": _NUMBER}
    candidate = _object(
        **place["properties"],
        throughput=_or_null(_object(**interval, basis=_TEXTS)),
        unit=_UNIT,
        costPerHour=_or_null(_NUMBER),
        costPerMillion=_or_null(_object(**interval)),
        scalingEfficiency=_or_null(_NUMBER),
        modelFlopsUtilization=_or_null(_NUMBER),
        saving=_or_null(_NUMBER),
        probability=_or_null(_SHARE),
        variant=_or_null(_TEXT),
        verdict=_one_of([ELIGIBLE, *RejectionReason]),
        message=_or_null(_TEXT),
    )
    latency = _or_null(_object(**{end: _or_null(_NUMBER) for end in interval}))  # null: no upper end
    server = _object(
        **place["properties"],
        servable=_or_null(_object(**interval)),
        replicasNeeded=_or_null(_COUNT),
        p50=latency,
        p99=latency,
        alone=latency,
        probability=_or_null(_SHARE),
        costPerHour=_or_null(_NUMBER),
        costPerMillionRequests=_or_null(_NUMBER),
        verdict=_one_of(ServingVerdict),
        message=_or_null(_TEXT),
    )
    decision = _object(action=_one_of(Action), reason=_REASON, message=_TEXT, target=_or_null(_PLACE))
    return {
        "Reason": _one_of(Reason),
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
            jobs=_list(
                _object(
                    namespace=_TEXT,
                    name=_TEXT,
                    state=_TEXT,
                    pool=_or_null(_TEXT),
                    chips=_or_null(_COUNT),
                    capacity=_or_null(_one_of(CapacityType)),
                    throughput=_or_null(_NUMBER),
                    unit=_or_null(_UNIT),
                    costPerHour=_or_null(_NUMBER),
                    costPerMillion=_or_null(_NUMBER),
                    bottleneck=_or_null(_TEXT),
                    targets=_or_null(_REASON),
                    progress=_or_null(_SHARE),
                    finishAt=_or_null(_TIME),
                    secondsLeft=_or_null(_NUMBER),
                    dollarsLeft=_or_null(_NUMBER),
                    goesTo=_or_null(_PLACE),
                    savings=_or_null(_NUMBER),
                    potentialSavingsPerHour=_or_null(_NUMBER),
                    spent=_or_null(_NUMBER),
                    saved=_or_null(_NUMBER),
                    promisedPerMillion=_or_null(_NUMBER),
                    deliveredPerMillion=_or_null(_NUMBER),
                    promisedUnit=_or_null(_UNIT),
                )
            ),
            total=_object(
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
            job=_object(
                namespace=_TEXT,
                name=_TEXT,
                state=_TEXT,
                objective=_one_of(Objective),
                adaptation=_one_of(AdaptationMode),
            ),
            targets=_object(
                met=_or_null({"type": "boolean"}),
                reason=_or_null(_REASON),
                message=_or_null(_TEXT),
                progress=_or_null(_SHARE),
                finishAt=_or_null(_TIME),
                secondsLeft=_or_null(_NUMBER),
                dollarsLeft=_or_null(_NUMBER),
                late=_or_null(_SHARE),
                over=_or_null(_SHARE),
            ),
            placement=_or_null(_of_status("placement", Revision)),
            profile=_or_null(
                _object(
                    quality=_TEXT,
                    window=_or_null(_TEXT),
                    measuredAt=_or_null(_TIME),
                    values=_NUMBERS,
                    missing=_TEXTS,
                )
            ),
            bottleneck=_or_null(_BOTTLENECK),
            current=_or_null(_CANDIDATE),
            candidates=_list(_CANDIDATE),
            decision=_DECISION,
            migration=_or_null(_of_status("migration", Migration, Revision)),
            recommendation=_or_null(_of_status("recommendation", Recommendation)),
            cost=_or_null(
                _object(
                    perHour=_or_null(_NUMBER),
                    spent=_NUMBER,
                    saved=_NUMBER,
                    savedRange=_object(low=_NUMBER, high=_NUMBER),
                    goodput=_or_null(_SHARE),
                )
            ),
            history=_list(_ENTRY),
            serving=_or_null(
                _object(
                    requestsPerSecond=_NUMBER,
                    p99Limit=_NUMBER,
                    batch=_or_null(_COUNT),
                    reason=_or_null(_one_of(ServingVerdict)),
                    message=_or_null(_TEXT),
                    candidates=_list(_SERVER),
                )
            ),
        ),
        _document(
            "JobProfile",
            asOf=_TIME,
            notes=_TEXTS,
            job=_object(namespace=_TEXT, name=_TEXT, state=_TEXT),
            profile=_or_null(
                _object(
                    quality=_TEXT, steadiness=_one_of(Steadiness), window=_or_null(_TEXT), measuredAt=_or_null(_TIME)
                )
            ),
            fields=_list(_object(name=_TEXT, value=_NUMBER, unit=_TEXT, quality=_one_of(Quality), origin=_TEXT)),
            step=_list(_object(part=_TEXT, share=_SHARE)),
            ranks=_or_null(_of_status("trace", TraceSpread)["properties"]["ranks"]),
            memory=_or_null(_of_status("trace", TraceMemory)["properties"]["summary"]["properties"]["memory"]),
            bottleneck=_or_null(_BOTTLENECK),
            model=_or_null(_of_status("profile", ModelTraits)["properties"]["model"]),
            missing=_list(_object(name=_TEXT, reason=_TEXT)),
        ),
        _document(
            "ExplanationList",
            asOf=_TIME,
            notes=_TEXTS,
            items=_list(_object(namespace=_TEXT, name=_TEXT, state=_TEXT, decision=_DECISION)),
        ),
        _document(
            "PoolReport",
            asOf=_TIME,
            notes=_TEXTS,
            pools=_list(
                _object(
                    name=_TEXT,
                    accelerator=_TEXT,
                    figures=_FIGURES,
                    declaredIn=_or_null(_TEXT),
                    measuredAt=_or_null(_TIME),
                    nodes=_COUNT,
                    chips=_object(total=_COUNT, free={"type": "integer"}, growable=_COUNT),
                    chipsPerNode=_COUNT,
                    slice=_or_null(_object(topology=_TEXT, chips=_COUNT)),
                    pricePerChipHour=_or_null(_NUMBER),
                    spotPricePerChipHour=_or_null(_NUMBER),
                    idlePerHour=_or_null(_NUMBER),
                    priceSource=_or_null(_one_of([source.value for source in FigureSource])),
                    source=_one_of(["declared", "discovered"]),
                    problems=_TEXTS,
                )
            ),
            total=_object(perHour=_NUMBER, usedPerHour=_NUMBER, idlePerHour=_NUMBER, unpriced=_TEXTS),
            problems=_list(_object(pool=_or_null(_TEXT), message=_TEXT)),
        ),
        _document(
            "AcceleratorList",
            items=_list(
                _object(
                    key=_TEXT,
                    vendor=_TEXT,
                    figures=_FIGURES,
                    declaredIn=_or_null(_TEXT),
                    memoryGigabytes=_NUMBER,
                    memoryGigabytesPerSecond=_NUMBER,
                    watts=_or_null(_NUMBER),
                    pricePerChipHour=_or_null(_NUMBER),
                    spotPricePerChipHour=_or_null(_NUMBER),
                    priceSource=_or_null(_one_of([source.value for source in FigureSource])),
                )
            ),
        ),
        _document(
            "RecommendationList",
            asOf=_TIME,
            notes=_TEXTS,
            items=_list(
                _object(
                    **{"namespace": _TEXT, "name": _TEXT, "id": _TEXT, "from": _PLACE, "to": _PLACE},
                    savings=_or_null(_NUMBER),
                    costPerHour=_or_null(_NUMBER),
                    potentialSavingsPerHour=_or_null(_NUMBER),
                    heldBy=_or_null(_REASON),
                    reason=_REASON,
                    message=_or_null(_TEXT),
                )
            ),
            potentialSavingsPerHour=_NUMBER,
        ),
        _document(
            "History",
            asOf=_TIME,
            items=_list(_object(namespace=_TEXT, name=_TEXT, entry=_ENTRY)),
        ),
        _document(
            "ChargebackReport",
            asOf=_TIME,
            since=_DAY,
            bookedUntil=_or_null(_TIME),
            notes=_TEXTS,
            by=_one_of(BY),
            rows={"type": "array", "items": {"anyOf": [_object(**{by: _TEXT}, **_CHARGE) for by in BY]}},
            total=_object(**_CHARGE),
        ),
        _document(
            "Calibration",
            pool=_TEXT,
            calibration=_object(
                accelerator=_TEXT,
                measuredAt=_TIME,
                reason=_REASON,
                message=_TEXT,
                device=_TEXT,
                software=_TEXT,
                node=_TEXT,
                chips=_COUNT,
                **_RATES,
                allReduce=_list(_object(chips=_COUNT, gigabytesPerSecond=_NUMBER)),
            )
            | {"required": ["accelerator", "measuredAt", "reason", "message", "device", "software", "node", "chips"]},
            dataSheet=_object(**_RATES | {"memoryGigabytesPerSecond": _or_null(_NUMBER)}),
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
