"""Job logs that others have published, as records of ended jobs: those of Philly, Helios and Alibaba.

None of them knows rates: a job's work is counted in seconds where it was. Its user chose where it ran, or the log names
no chip; it may run anywhere, unless the log says what chip it needs. Jobs that held no chip are no jobs here.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise, zip_longest
from typing import Any, Final

from rightpool.api.ended_job import BadLine, EndedJob, Stay, why
from rightpool.api.placement import Placement
from rightpool.hardware.pool import Pool

EPOCH: Final = 1_600_000_000.0
"""Unix seconds of second 0 of logs that count from their own beginning."""
_RESULTS: Final = {"pass": "Completed", "completed": "Completed", "succeeded": "Completed"}
_STILL: Final = frozenset({"running", "pending"})
_UNKNOWN: Final = frozenset({"", "nan", "none", "null"})
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.-]+")
_MEMORY: Final = re.compile(r"m[0-9]+$")
_BEGINS: Final = re.compile(r"^([ \t]*)(?:\[[ \t]*)?\{")

Jobs = tuple[list[EndedJob], list[BadLine]]
_Pools = Mapping[str, Pool]


def philly_jobs(lines: Iterable[str], pools: _Pools, on: str) -> Jobs:
    """`cluster_job_log`: a JSON list of jobs, or one object a line, each with its attempts."""

    def read(body: Any) -> EndedJob | None:
        if not isinstance(body, dict):
            raise ValueError("no object")
        stays: list[tuple[float, float, int, int]] = []
        for attempt in _list(body, "attempts"):
            chips = [len(_list(machine, "gpus")) for machine in _list(attempt, "detail")]
            begin, end = (attempt.get(name) for name in ("start_time", "end_time"))
            if _missing(begin) or _missing(end) or not sum(chips):
                continue  # the log did not see it begin or end, or it still ran
            stays.append((_time("start_time", begin), _time("end_time", end), sum(chips), len(chips)))
        if not stays:
            return None
        name = _name(body.get("vc"), body.get("jobid"))
        return _job(name, _time("submitted_time", body.get("submitted_time")), stays, pools, on, body.get("status"))

    return _all(_objects(list(lines)), read)


def helios_jobs(lines: Iterable[str], pools: _Pools, on: str) -> Jobs:
    """`cluster_log.csv`: job_id, user, vc, gpu_num, node_num, state, submit_time, start_time and end_time."""

    def read(row: Mapping[str, str]) -> EndedJob | None:
        chips, nodes = _count(row, "gpu_num"), _count(row, "node_num")
        if not chips or _missing(row["start_time"]) or _missing(row["end_time"]):
            return None
        begin, end = _time("start_time", row["start_time"]), _time("end_time", row["end_time"])
        name = _name(row["vc"], row["job_id"])
        stays = [(begin, end, chips, max(1, nodes))]
        return _job(name, _time("submit_time", row["submit_time"]), stays, pools, on, row["state"])

    names = ("job_id", "vc", "gpu_num", "node_num", "state", "submit_time", "start_time", "end_time")
    return _all(_rows(lines, {names: read}))


def alibaba_jobs(lines: Iterable[str], pools: _Pools, on: str) -> Jobs:
    """`openb_pod_list_*.csv` of 2023, and `job_info_df.csv` of 2026, told apart by their columns. Of a pod that shares
    a chip with others, a whole one is counted."""

    def pod(row: Mapping[str, str]) -> EndedJob | None:
        chips = _count(row, "num_gpu")
        if not chips or _missing(row["scheduled_time"]) or _missing(row["deletion_time"]):
            return None
        begin, end = (EPOCH + _number(row, name) for name in ("scheduled_time", "deletion_time"))
        kinds = [kind for kind in row.get("gpu_spec", "").split("|") if not _missing(kind)]
        where, allowed = _pool_of(kinds, pools, on)
        arrived = EPOCH + _number(row, "creation_time")
        name = _name(row.get("qos"), row["name"])
        return _job(name, arrived, [(begin, end, chips, 1)], pools, where, row["pod_phase"], allowed)

    def job(row: Mapping[str, str]) -> EndedJob | None:
        workers, each = _count(row, "worker_num"), _count(row, "gpu_request")
        if not workers * each:
            return None
        where, allowed = _pool_of([row["gpu_model"]], pools, on)
        begin = EPOCH + _number(row, "submit_time")
        stays = [(begin, begin + _number(row, "duration"), workers * each, workers)]
        return _job(_name(row["organization"], row["job_name"]), begin, stays, pools, where, "completed", allowed)

    pods = ("name", "num_gpu", "pod_phase", "creation_time", "deletion_time", "scheduled_time")
    jobs = ("job_name", "organization", "gpu_model", "gpu_request", "worker_num", "submit_time", "duration")
    return _all(_rows(lines, {pods: pod, jobs: job}))


# --- lines -----------------------------------------------------------------------------------------------------------

_Read = Callable[[Any], EndedJob | None]


def _all(found: Iterable[tuple[int, Any, _Read | None]], read: _Read | None = None) -> Jobs:
    """What each of these is: a line number, what stands there, and how it is read. An error is what can't be read."""
    jobs: list[EndedJob] = []
    bad: list[BadLine] = []
    for number, body, own in found:
        if isinstance(body, Exception):
            bad.append(BadLine(number, why(body)))
            continue
        reader = own or read
        assert reader is not None
        try:
            job = reader(body)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            bad.append(BadLine(number, why(error)))
        else:
            if job is not None:
                jobs.append(job)
    return jobs, bad


def _objects(lines: list[str]) -> Iterator[tuple[int, Any, None]]:
    """The objects of a list, or one after another, each with the number of its first line. One that can't be read ends
    where the next one begins: at a line that begins as the first one did."""
    indents = [match[1] for line in lines if (match := _BEGINS.match(line))]
    indent = min(indents, key=len, default="")
    firsts = [n for n, line in enumerate(lines) if (match := _BEGINS.match(line)) and match[1] == indent]
    for first, last in zip_longest(firsts, firsts[1:], fillvalue=len(lines)):
        text = "\n".join(lines[first:last]).lstrip(" \t[")
        try:
            body, end = json.JSONDecoder().raw_decode(text)
            rest = text[end:].strip(" \t\r\n,]")
            while rest:  # several on one line
                yield first + 1, body, None
                body, end = json.JSONDecoder().raw_decode(rest)
                rest = rest[end:].strip(" \t\r\n,]")
            yield first + 1, body, None
        except (ValueError, RecursionError) as error:
            yield first + 1, error, None
    for number, line in enumerate(lines[: firsts[0] if firsts else len(lines)], 1):
        if line.strip(" \t\r[],"):
            yield number, ValueError("no object begins here"), None


def _rows(
    lines: Iterable[str], forms: Mapping[tuple[str, ...], Callable[[Mapping[str, str]], EndedJob | None]]
) -> Iterator[tuple[int, Any, _Read | None]]:
    """The rows of a table whose first line names its columns, by the form that has all of them."""
    source = iter(lines)
    names = next(csv.reader([next(source, "")]), [])
    read = next((read for columns, read in forms.items() if set(columns) <= set(names)), None)
    if read is None:
        wanted = "; or ".join(", ".join(columns) for columns in forms)
        yield 1, ValueError(f"the columns must be {wanted}"), None
        return
    for number, line in enumerate(source, 2):
        if not line.strip():
            continue
        try:
            cells = next(csv.reader([line.replace("\0", "")], strict=True))
        except (csv.Error, StopIteration) as error:
            yield number, ValueError(str(error) or "empty"), None
            continue
        if len(cells) != len(names):
            yield number, ValueError(f"{len(cells)} cells, and there are {len(names)} columns"), None
            continue
        yield number, dict(zip(names, cells, strict=True)), read


# --- cells -----------------------------------------------------------------------------------------------------------


def _job(
    name: str,
    arrived: float,
    stays: list[tuple[float, float, int, int]],
    pools: _Pools,
    on: str,
    result: Any,
    allowed: tuple[str, ...] = (),
) -> EndedJob | None:
    """stays: when each began and ended, with its chips and nodes. None of one that has not ended."""
    if str(result).strip().lower() in _STILL:
        return None
    made = []
    for begin, end, chips, nodes in sorted(stays):
        pods = nodes if chips % nodes == 0 else _pods(chips, pools[on].chips_per_node)
        made.append(Stay(Placement(on, chips, pods), begin, end, pools[on].accelerator.key))
    for one, following in pairwise(made):
        if following.begin < one.end:
            raise ValueError("an attempt begins before the one before it ends")
    if made[0].begin < arrived:
        raise ValueError("it starts before it is submitted")
    if any(stay.end < stay.begin for stay in made):
        raise ValueError("it ends before it starts")
    if made[-1].end <= made[0].begin:
        return None  # it held chips for no time
    return EndedJob(
        job=name,
        arrived=arrived,
        stays=tuple(made[-16:]),
        result=_RESULTS.get(str(result).strip().lower(), "Failed"),
        spec={"placement": {"pools": {"allow": list(allowed)}}} if allowed else {},
    )


def _pods(chips: int, node: int) -> int:
    """The fewest pods of equal size that nodes have room for."""
    return next(pods for pods in range(math.ceil(chips / node), chips + 1) if chips % pods == 0)


def _pool_of(kinds: list[str], pools: _Pools, on: str) -> tuple[str, tuple[str, ...]]:
    """Where a job ran that needs one of these chips, and the pools that have them: those whose key begins so, or
    whose name is that. `on`, and any, where there is none."""
    found = tuple(
        name
        for name, pool in sorted(pools.items())
        if any(_is_of(_words(kind), _words(name), _words(pool.accelerator.key)) for kind in kinds)
    )
    return (found[0], found) if found else (on, ())


def _is_of(kind: list[str], name: list[str], key: list[str]) -> bool:
    """V100M32 has its memory in its last word."""
    bare = [*kind[:-1], _MEMORY.sub("", kind[-1])] if kind else kind
    return bool(kind) and (kind == name or bare == name or bare == key[: len(bare)])


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _name(namespace: Any, name: Any) -> str:
    parts = [_NOT_IN_NAMES.sub("-", str(part).lower()).strip("-.")[:100] for part in (namespace, name)]
    if not parts[1] or _missing(name):
        raise ValueError("it has no name")
    return f"{parts[0] or 'default'}/{parts[1]}"


def _missing(text: Any) -> bool:
    return text is None or str(text).strip().lower() in _UNKNOWN


def _list(body: Any, name: str) -> list[Any]:
    found = body.get(name)
    if not isinstance(found, list):
        raise ValueError(f"{name} is no list")
    return found


def _time(name: str, text: Any) -> float:
    """A time without a zone is one of UTC."""
    try:
        moment = datetime.fromisoformat(str(text).strip())
    except ValueError:
        raise ValueError(f"{name} is {str(text)[:40]!r}, and no time such as 2017-10-07 01:12:09") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _number(row: Mapping[str, str], name: str) -> float:
    try:
        found = float(row[name])
    except ValueError:
        found = math.nan
    if not 0.0 <= found < 1e10:
        raise ValueError(f"{name} is {row[name][:40]!r}, and no number of seconds")
    return found


def _count(row: Mapping[str, str], name: str) -> int:
    found = _number(row, name) if not _missing(row[name]) else 0.0
    if found != int(found) or found > 1e6:
        raise ValueError(f"{name} is {row[name][:40]!r}, and no whole number")
    return int(found)
