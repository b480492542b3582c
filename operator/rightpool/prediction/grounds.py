"""What a prediction was derived from, and the doubt that it shares with others: one row, for who asks."""

from typing import Final

import numpy as np

from rightpool.api.estimate import WINDOW, Loadings
from rightpool.api.ground import Ground, GroundKind
from rightpool.api.pool import LinkKind
from rightpool.prediction.chip_model import ChipModel
from rightpool.prediction.columns import Bools, Codes, Floats
from rightpool.prediction.features import Features
from rightpool.prediction.machines import Machines
from rightpool.prediction.precision import HALF, SINGLE, UNKNOWN_PRECISION, peak
from rightpool.prediction.predictor import Describe, Destinations, Origin

HOST: Final = "host"

_MEASURED: Final = {
    int(Origin.MEASURED_NOW): Ground(GroundKind.MEASURED_NOW),
    int(Origin.MEASURED_BEFORE): Ground(GroundKind.MEASURED_BEFORE),
}


def described(
    jobs: Features,
    machines: Machines,
    targets: Destinations,
    origin: Codes,
    chip: Floats,
    host: Floats,
    other_host: Bools,
    pools_seen: dict[int, int],
    model: ChipModel,
) -> Describe:
    """chip, host: standard deviations of the log from either, by row. pools_seen: kinds of chips that jobs were
    measured on, where there are several."""

    def describe(row: int) -> tuple[tuple[Ground, ...], Loadings]:
        source = int(origin[row])
        job, pool = int(targets.job[row]), int(targets.pool[row])
        window = (WINDOW, float(jobs.noise[job]))
        if source in _MEASURED:
            return (_MEASURED[source],), (window,)
        home = int(jobs.pool[job])
        grounds = [*_step_grounds(jobs, job), *_link_grounds(jobs, machines, targets, row)]
        if pool == home:
            return tuple(grounds), (window,)
        grounds += _chip_grounds(jobs, machines, job, pool, pools_seen.get(job, 1), model)
        if targets.other_program[row]:
            grounds.append(Ground(GroundKind.OTHER_PROGRAM))
        if jobs.throttling[job] > 0.0:
            grounds.append(Ground(GroundKind.THROTTLED, number=float(np.exp(-jobs.throttling[job]))))
        if other_host[row]:
            grounds.append(Ground(GroundKind.OTHER_HOST))
        there = machines.pools[pool]
        return tuple(grounds), (window, ("chips of " + there.name, float(chip[row])), (HOST, float(host[row])))

    return describe


def _step_grounds(jobs: Features, job: int) -> list[Ground]:
    shares, grounds = jobs.shares, []
    if jobs.chips[job] > 1:
        known = shares.comm_known[job]
        grounds.append(Ground(GroundKind.COMMUNICATION if known else GroundKind.USUAL_COMMUNICATION))
    grounds.append(Ground(GroundKind.CHIP_ACTIVITY if shares.busy_known[job] else GroundKind.CHIP_ACTIVITY_UNKNOWN))
    if shares.counted[job]:
        demand = shares.memory_active[job] / (shares.memory_active[job] + shares.sm_active[job])
        grounds.append(Ground(GroundKind.DEMAND, number=float(demand)))
    elif not np.isnan(shares.weight[job]):
        grounds.append(Ground(GroundKind.ARITHMETIC_AND_MEMORY))
    return grounds


def _link_grounds(jobs: Features, machines: Machines, targets: Destinations, row: int) -> list[Ground]:
    job, pool = int(targets.job[row]), int(targets.pool[row])
    if targets.chips[row] == 1:
        return []
    grounds = []
    here, there = machines.pools[int(jobs.pool[job])], machines.pools[pool]
    if jobs.chips[job] > 1 and here.intra_link.kind != there.intra_link.kind:
        grounds.append(_boundary(here.intra_link.kind, there.intra_link.kind))
    if targets.groups[row] > 1 and jobs.groups[job] == 1:
        grounds.append(_boundary(there.intra_link.kind, there.inter_link.kind))
    if targets.chips[row] != jobs.chips[job]:
        seen = jobs.seen
        alike = (seen.job == job) & (machines.chip[seen.pool] == machines.chip[jobs.pool[job]])
        count = len({int(jobs.chips[job]), *seen.chips[alike].tolist()})
        grounds.append(Ground(GroundKind.SIZES_SEEN, number=float(count)))
    return grounds


def _boundary(before: LinkKind, after: LinkKind) -> Ground:
    return Ground(GroundKind.BOUNDARY, (before.value, after.value))


def _chip_grounds(jobs: Features, machines: Machines, job: int, pool: int, seen: int, model: ChipModel) -> list[Ground]:
    here, there = machines.pools[int(jobs.pool[job])].accelerator, machines.pools[pool].accelerator
    if here.key == there.key:
        return [Ground(GroundKind.SAME_CHIP, (here.key,))]
    grounds = [Ground(GroundKind.SPECIFICATIONS, (here.key, there.key))]
    known = tuple(chip.key for chip in (here, there) if f"chip:{chip.key}" in model.index)
    if known:
        grounds.append(Ground(GroundKind.PUBLISHED_THROUGHPUT, known))
    if seen > 1:
        grounds.append(Ground(GroundKind.CHIPS_SEEN, number=float(seen)))
    if int(jobs.kind[job]) == UNKNOWN_PRECISION:
        common = [kind for kind in (HALF, SINGLE) if peak(here, kind) and peak(there, kind)]
        if len(common) > 1:
            grounds.append(Ground(GroundKind.PRECISION_UNKNOWN))
    if model.observations:
        grounds.append(Ground(GroundKind.FLEET, number=float(model.observations)))
    return grounds
