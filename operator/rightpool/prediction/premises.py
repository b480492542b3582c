"""What a prediction was derived from, and the doubt that it shares with others: one row, for who asks."""

from typing import Final

import numpy as np

from rightpool.api.estimate import WINDOW, Loadings
from rightpool.api.pool import LinkKind
from rightpool.api.premise import Premise, PremiseKind
from rightpool.prediction.chip_model import ChipModel
from rightpool.prediction.columns import Bools, Codes, Floats
from rightpool.prediction.features import Features
from rightpool.prediction.machines import Machines
from rightpool.prediction.precision import HALF, SINGLE, UNKNOWN_PRECISION, peak
from rightpool.prediction.predictor import Describe, Destinations, Origin

HOST: Final = "host"

_MEASURED: Final = {
    int(Origin.MEASURED_NOW): Premise(PremiseKind.MEASURED_NOW),
    int(Origin.MEASURED_BEFORE): Premise(PremiseKind.MEASURED_BEFORE),
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

    def describe(row: int) -> tuple[tuple[Premise, ...], Loadings]:
        source = int(origin[row])
        job, pool = int(targets.job[row]), int(targets.pool[row])
        window = (WINDOW, float(jobs.noise[job]))
        if source in _MEASURED:
            return (_MEASURED[source],), (window,)
        home = int(jobs.pool[job])
        premises = [*_step_premises(jobs, job), *_link_premises(jobs, machines, targets, row)]
        if pool == home:
            return tuple(premises), (window,)
        premises += _chip_premises(jobs, machines, job, pool, pools_seen.get(job, 1), model)
        if targets.other_program[row]:
            premises.append(Premise(PremiseKind.OTHER_PROGRAM))
        if jobs.throttling[job] > 0.0:
            premises.append(Premise(PremiseKind.THROTTLED, number=float(np.exp(-jobs.throttling[job]))))
        if other_host[row]:
            premises.append(Premise(PremiseKind.OTHER_HOST))
        there = machines.pools[pool]
        return tuple(premises), (window, ("chips of " + there.name, float(chip[row])), (HOST, float(host[row])))

    return describe


def _step_premises(jobs: Features, job: int) -> list[Premise]:
    shares, premises = jobs.shares, []
    if jobs.chips[job] > 1:
        known = shares.comm_known[job]
        premises.append(Premise(PremiseKind.COMMUNICATION if known else PremiseKind.USUAL_COMMUNICATION))
    premises.append(Premise(PremiseKind.CHIP_ACTIVITY if shares.busy_known[job] else PremiseKind.CHIP_ACTIVITY_UNKNOWN))
    if shares.counted[job]:
        demand = shares.memory_active[job] / (shares.memory_active[job] + shares.sm_active[job])
        premises.append(Premise(PremiseKind.DEMAND, number=float(demand)))
    elif not np.isnan(shares.weight[job]):
        premises.append(Premise(PremiseKind.ARITHMETIC_AND_MEMORY))
    return premises


def _link_premises(jobs: Features, machines: Machines, targets: Destinations, row: int) -> list[Premise]:
    job, pool = int(targets.job[row]), int(targets.pool[row])
    if targets.chips[row] == 1:
        return []
    premises = []
    here, there = machines.pools[int(jobs.pool[job])], machines.pools[pool]
    if jobs.chips[job] > 1 and here.intra_link.kind != there.intra_link.kind:
        premises.append(_boundary(here.intra_link.kind, there.intra_link.kind))
    if targets.groups[row] > 1 and jobs.groups[job] == 1:
        premises.append(_boundary(there.intra_link.kind, there.inter_link.kind))
    if targets.chips[row] != jobs.chips[job]:
        seen = jobs.seen
        alike = (seen.job == job) & (machines.chip[seen.pool] == machines.chip[jobs.pool[job]])
        count = len({int(jobs.chips[job]), *seen.chips[alike].tolist()})
        premises.append(Premise(PremiseKind.SIZES_SEEN, number=float(count)))
    return premises


def _boundary(before: LinkKind, after: LinkKind) -> Premise:
    return Premise(PremiseKind.BOUNDARY, (before.value, after.value))


def _chip_premises(
    jobs: Features, machines: Machines, job: int, pool: int, seen: int, model: ChipModel
) -> list[Premise]:
    here, there = machines.pools[int(jobs.pool[job])].accelerator, machines.pools[pool].accelerator
    if here.key == there.key:
        return [Premise(PremiseKind.SAME_CHIP, (here.key,))]
    premises = [Premise(PremiseKind.SPECIFICATIONS, (here.key, there.key))]
    known = tuple(chip.key for chip in (here, there) if f"chip:{chip.key}" in model.index)
    if known:
        premises.append(Premise(PremiseKind.PUBLISHED_THROUGHPUT, known))
    if seen > 1:
        premises.append(Premise(PremiseKind.CHIPS_SEEN, number=float(seen)))
    if int(jobs.kind[job]) == UNKNOWN_PRECISION:
        common = [kind for kind in (HALF, SINGLE) if peak(here, kind) and peak(there, kind)]
        if len(common) > 1:
            premises.append(Premise(PremiseKind.PRECISION_UNKNOWN))
    if model.observations:
        premises.append(Premise(PremiseKind.FLEET, number=float(model.observations)))
    return premises
