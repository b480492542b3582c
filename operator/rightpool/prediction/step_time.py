"""What another size, and other links, do to a step.

    T = load(T_host + √((T_chip + T_copy)² + T_sync²) · loss(n))

T_sync is a ring all-reduce: 2(r−1)/r seconds per byte over the fast link among the r chips of a group, 2(m−1)/m over
the slow one between m groups. T_copy moves the same bytes in each chip's memory, into buckets and out of them; alone, a
chip does without. The root says how well communication hides behind computation. loss(n) is what waiting for each other
costs. load() is what the loader adds (step_shares.py): each pod has its own, so it has more to load with more chips of
a pod, and faster chips do not make it faster.

Bytes a second and the loss are not known of a job, or roughly; each is one of a few values with its probability, which
what was measured changes: the exposed communication, and rates at other sizes. A prediction has the mean and the
variance over them. Times are in units of the step now.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from rightpool.api.value_object import value_object
from rightpool.prediction.columns import Bools, Floats, Ints
from rightpool.prediction.features import Features
from rightpool.prediction.last_doubling import LastDoubling
from rightpool.prediction.machines import Machines, seconds_per_byte
from rightpool.prediction.predictor import Destinations
from rightpool.prediction.size_scales import SizeScales
from rightpool.prediction.step_shares import forms, loaded, loader_chances

# Bytes to sum for a byte that the chip copies in the same time, lognormal: a faster chip makes gradients sooner. From
# 1 → 2, 4, 8 chips of some 500 published jobs. Wider than most of them need: a job that shows much communication is
# believed.
VOLUME: Final = 4.5e-4
VOLUME_SD: Final = 1.9
# What a chip copies a second where that is not known.
USUAL_COPIES: Final = 1e12
VOLUMES: Final = (1e2, 1e14)  # what a program says beyond these is a defect
# With parameters and the length of a step known: buckets, dtypes on the wire and the links' real rates are left.
KNOWN_VOLUME_SD: Final = 0.35
# What exposed communication by itself says of them, and the least of it that a trace resolves.
EXPOSED_VOLUME_SD: Final = 0.4
RESOLUTION: Final = 0.003
# Times that a summed byte passes through memory: read and written on its way into a bucket, and on its way out. So do
# PyTorch's DistributedDataParallel (reducer.cpp) and Horovod; FSDP gathers and scatters through such copies too.
# Gradients that are views of buckets pass twice, and XLA may sum where they are.
PASSES: Final = 4.0
PASSES_SD: Final = 1.5
# Times that they pass through memory in any step: parameters are read forward and backward, gradients written, and the
# optimizer reads both and writes parameters. So copies are bounded by the work.
LEAST_PASSES: Final = 6.0
# Exponent of the power mean of a step's times over what is not known, for fewer chips; for more, its negative. The long
# tail of these times is towards less from each change of size, and this mean lies near their median. Where one of them
# falls it falls too, which a correction of the mean for skew does not promise: faster links never slow a job down.
MIDDLE: Final = 4.0
_STEPS: Final = ((-1.732, 1 / 6), (0.0, 2 / 3), (1.732, 1 / 6))
# Log of what waiting for each other costs on two chips, and how likely; a fifth of it for each further doubling.
_LOSSES: Final = ((0.01, 0.55), (0.06, 0.25), (0.15, 0.14), (0.35, 0.06))
DOUBLING: Final = 0.2

_NODES: Final = tuple((step, loss, first * second) for step, first in _STEPS for loss, second in _LOSSES)

# Two sizes of one job differ by this much in ways that nothing here tells: rows of published rates that are alike in
# all that is known of them differ by 1.2% in the median. And as much again for each doubling away from what was seen.
SIZE_SD: Final = 0.02
# Of what the last doubling lacked, or of the slope beside the model, this much for each doubling away from what was
# seen: whether the next one lacks as much, less or more, nothing tells. A fit on published rates would have it at 1.6,
# which makes a job that reports such a size far less sure than one that does not.
LACKING: Final = 0.5
# What a measured rate is off by itself: of a small difference from the last doubling half may be this.
RATE_SD: Final = 0.03
# Crossing from one group of chips to several for the first time: nothing observed speaks of the new fabric.
NEW_FABRIC_SD: Final = 0.25

# Chip time against the chip's share of the batch: exponents 0.62–0.85 were seen on one chip for 4- to 8-fold changes,
# because optimizer steps and small kernels do not shrink with the batch.
BATCH_EXPONENT: Final = 0.8
BATCH_EXPONENT_SD: Final = 0.12


@value_object
class StepTimes:
    """The step on each target, in units of the step now."""

    log: Floats
    """Log of the whole step."""
    chip_part: Floats
    """The share of it that goes with the chip's speed, 0–1."""
    host_part: Floats
    """d log(time) / d host share."""
    sd: Floats
    """Of log(time), from size and links alone."""


@value_object
class SizeModel:
    """What is known of how each job scales."""

    volume: Floats
    """Log of bytes a second of work."""
    volume_sd: Floats
    """Its standard deviation."""
    passes: Floats
    """Of these through memory; 0 where exposed communication alone tells of bytes: it may be waiting, and none."""
    chance: Floats
    """Probabilities of the nodes, a row a job."""
    loader: Floats
    """Probabilities of what the loader is, a row a form."""
    slope: Floats
    """Log of the rate for each doubling beyond the model."""
    reach: tuple[Floats, Floats]
    """Log2 of the fewest and the most chips that each job was seen on."""
    last: LastDoubling
    """What the largest size that was seen has brought."""
    wide: Bools
    """Whether it was seen on several groups."""

    @classmethod
    def of(cls, jobs: Features, machines: Machines, scales: SizeScales) -> "SizeModel":
        """Of all jobs of a fleet."""
        known = ~np.isnan(jobs.volume)
        passes = np.where(known | ~(jobs.shares.comm_known & (jobs.chips > 1)), PASSES, 0.0)
        copied = np.nan_to_num(jobs.volume) * _copies(passes, jobs.chips, machines.memory[jobs.pool])
        work = np.maximum(jobs.shares.work - np.nan_to_num(jobs.shares.exposed) - copied, 0.05)
        copies = machines.memory[jobs.pool]
        usual = VOLUME * np.where(np.isfinite(copies), copies, USUAL_COPIES)
        volume = np.log(np.clip(np.where(known, jobs.volume / work, usual), *VOLUMES))
        volume_sd = np.where(known, KNOWN_VOLUME_SD, VOLUME_SD)
        observed = np.flatnonzero(jobs.shares.comm_known & (jobs.chips > 1))
        if observed.size:
            implied, implied_sd = _implied_log_volume(jobs, machines, passes, observed), EXPOSED_VOLUME_SD
            weight = (volume_sd[observed] / implied_sd) ** 2
            volume[observed] = (volume[observed] + weight * implied) / (1.0 + weight)
            volume_sd[observed] /= np.sqrt(1.0 + weight)
        prior = np.log([chance for *_, chance in _NODES])
        logs = np.tile(prior, (len(jobs.chips), 1))
        size = np.log2(jobs.chips)
        reach, wide = (size.copy(), size.copy()), jobs.groups > 1
        loader, last = loader_chances(jobs.shares), LastDoubling.unknown(len(size))
        model = cls(volume, volume_sd, passes, np.exp(logs), loader, np.zeros(len(size)), reach, last, wide)
        if observed.size:
            logs[observed] += _exposed(jobs, machines, model, observed)
        seen = jobs.seen
        alike = np.flatnonzero(machines.chip[seen.pool] == machines.chip[jobs.pool[seen.job]])
        alike = alike[seen.chips[alike] != jobs.chips[seen.job[alike]]]
        if not alike.size:
            return replace(model, chance=_normalised(logs))
        job = seen.job[alike]
        rows = Destinations.measured(seen, alike)
        # The rate against that of now: the log of the time per sample, with the batch that goes with the size.
        rest = -np.log(seen.rate[alike] / (jobs.rate[job] * growth(jobs, rows)))
        rest = np.nan_to_num(np.clip(rest, -5.0, 5.0))
        load = _load(jobs, job, rows)
        steps = _times(jobs, machines, model, rows, np.ones(len(alike)))
        nodes = np.log([forms(jobs.shares, job, time, load)[0] for time, _ in steps]).transpose(2, 0, 1)
        joint = logs[:, :, np.newaxis] + np.log(np.maximum(loader.T, 1e-30))[:, np.newaxis, :]
        np.add.at(joint, job, -0.5 * ((nodes - rest[:, np.newaxis, np.newaxis]) / scales.seen) ** 2)
        chances = _normalised(joint.reshape(len(size), -1)).reshape(joint.shape)
        left = rest - (chances[job] * nodes).sum(axis=(1, 2))
        distance = np.log2(rows.chips / jobs.chips[job])
        # The first step over other links paid for these, too: it says less of a slope.
        other_links = (rows.groups > 1) != (jobs.groups[job] > 1)
        counts = np.where(other_links, 1.0 / (1.0 + (NEW_FABRIC_SD / scales.seen) ** 2), 1.0)
        weight, pull = np.zeros(len(size)), np.zeros(len(size))
        np.add.at(weight, job, counts * distance**2)
        np.add.at(pull, job, counts * distance * left)
        least, most = size.copy(), size.copy()
        np.minimum.at(least, job, np.log2(rows.chips))
        np.maximum.at(most, job, np.log2(rows.chips))
        wide = model.wide.copy()
        wide[job[rows.groups > 1]] = True
        likely = np.maximum(scales.slope, np.abs(pull) / np.maximum(weight, 1e-9))
        slope = pull / (weight + (scales.seen / likely) ** 2)
        last = LastDoubling.of(jobs, machines, rows, most)
        # Those of other jobs stay as they are to the last digit: no job's estimate depends on who else is evaluated.
        chance, measured = _normalised(logs), np.unique(job)
        chance[measured], loader[:, measured] = chances[measured].sum(axis=2), chances[measured].sum(axis=1).T
        reach = (least, most)
        return replace(model, chance=chance, loader=loader, slope=slope, reach=reach, last=last, wide=wide)

    def bytes_a_second(self, step: float) -> Floats:
        """So many standard deviations off."""
        volume: Floats = np.exp(self.volume + step * self.volume_sd)
        return volume


def growth(jobs: Features, rows: Destinations) -> Floats:
    """Samples of a step there, for one now."""
    grown: Floats = np.where(jobs.keeps_batch[rows.job], 1.0, rows.chips / jobs.chips[rows.job])
    return grown


def step_times(jobs: Features, machines: Machines, sizes: SizeModel, rows: Destinations, slowdown: Floats) -> StepTimes:
    """The steps on targets whose chips take `slowdown` times as long for the same work."""
    job, shares = rows.job, jobs.shares
    before = jobs.chips[job]
    variance, spreads, unseen = np.zeros(len(job)), np.zeros(len(job)), np.ones(len(job))
    resized = np.flatnonzero(rows.chips != before)
    if resized.size:
        own, to = job[resized], np.log2(rows.chips[resized])
        least, most = sizes.reach[0][own], sizes.reach[1][own]
        beyond = np.maximum(np.maximum(least - to, to - most), 0.0)
        # Between two sizes that were seen doubt grows from either, as that of a bridge.
        between = np.maximum((to - least) * (most - to), 0.0) / np.maximum(most - least, 1.0)
        # What copies take shows at sizes that were seen, and is the less known the further from them.
        unseen[resized] = beyond / np.abs(to - np.log2(before[resized]))
        lacked = np.where(to > most, np.nan_to_num(np.log(2.0) - sizes.last.gain[own]), 0.0)
        doubt = SIZE_SD + LACKING * np.maximum(np.abs(sizes.slope[own]), lacked)
        variance[resized] = SIZE_SD**2 + doubt**2 * (beyond**2 + between)
        fixed = resized[jobs.keeps_batch[own]]
        variance[fixed] += (BATCH_EXPONENT_SD * np.log(before[fixed] / rows.chips[fixed])) ** 2
    variance += np.where((rows.groups > 1) & ~sizes.wide[job], NEW_FABRIC_SD**2, 0.0)

    linked = np.flatnonzero((before > 1) | (rows.chips > 1))
    single = np.flatnonzero((before == 1) & (rows.chips == 1))
    rest, chip, unexplained = np.ones(len(job)), np.ones(len(job)), np.zeros(len(job))
    if single.size:
        work = shares.work[job[single]] * slowdown[single]
        rest[single] = shares.host[job[single]] + work
        chip[single] = work / rest[single]
    if linked.size:
        part = rows.take(linked)
        own, slow = job[linked], slowdown[linked]
        first, second, middle = np.zeros(linked.size), np.zeros(linked.size), np.zeros(linked.size)
        part_of_chip = np.zeros(linked.size)
        power = MIDDLE * np.sign(before[linked] - part.chips)
        centre = None
        for node, (time, chip_part) in enumerate(_times(jobs, machines, sizes, part, slow)):
            chance = sizes.chance[own, node]
            log = np.log(time)
            centre = log if centre is None else centre
            off = log - centre
            first += chance * off
            second += chance * (off * off)
            middle += chance * np.exp(power * off)
            part_of_chip += chance * chip_part
        assert centre is not None
        spread = np.maximum(second - first**2, 0.0)
        unexplained[linked] = sizes.slope[own] * np.log2(part.chips / before[linked])
        mean = np.where(power == 0.0, first, np.log(middle) / np.where(power == 0.0, 1.0, power))
        rest[linked] = np.exp(centre + mean)
        chip[linked] = part_of_chip
        # As doubtful where none are counted: bytes may be copied there, too.
        now = _copies(np.full(len(jobs.chips), PASSES_SD), jobs.chips, machines.memory[jobs.pool])
        more = _copies(np.full(linked.size, PASSES_SD), part.chips, machines.memory[part.pool]) - now[own]
        bytes_a_second = np.minimum(sizes.bytes_a_second(0.0), machines.memory[jobs.pool] / LEAST_PASSES)
        spread += ((bytes_a_second * shares.work)[own] * more * unseen[linked]) ** 2
        spreads[linked] = spread
    loading = loaded(shares, sizes.loader, job, rest, _load(jobs, job, rows))
    log = loading.whole + unexplained
    log += _diminished(jobs, machines, sizes, rows, slowdown, log)
    return StepTimes(
        log=log,
        chip_part=chip * loading.slope,
        host_part=np.where(shares.host_sd[job] > 0.0, (1.0 - slowdown) / rest * loading.slope, 0.0),
        sd=np.sqrt(variance + loading.slope**2 * spreads + loading.variance),
    )


def _diminished(
    jobs: Features, machines: Machines, sizes: SizeModel, rows: Destinations, slowdown: Floats, log: Floats
) -> Floats:
    """How much longer steps take than `log` says, in logarithms: beyond the largest size that was seen, a doubling
    brings no more than the last one did, as far as that is not noise. Each doubling by itself, one after the other."""
    longer = np.zeros(len(log))
    most, last = sizes.reach[1][rows.job], sizes.last
    chosen = np.flatnonzero((np.log2(rows.chips) > most) & last.bounds[rows.job])
    if not chosen.size:
        return longer
    there = rows.take(chosen)
    chips = np.maximum(np.rint(np.exp2(most[chosen])).astype(np.int64), -(-there.chips // 2))
    per_group = np.minimum(there.per_group, chips)
    smaller = replace(there, chips=chips, per_group=per_group, groups=-(-chips // per_group))
    begin = step_times(jobs, machines, sizes, smaller, slowdown[chosen]).log
    doublings = np.log2(there.chips / chips)
    gain = (np.log(growth(jobs, there) / growth(jobs, smaller)) - log[chosen] + begin) / doublings
    more = np.maximum(gain - last.gain[there.job], 0.0)
    noise = 2.0 * (RATE_SD / last.doublings[there.job]) ** 2
    longer[chosen] = doublings * more / (1.0 + noise / np.maximum(more, RATE_SD) ** 2)
    return longer


def _times(
    jobs: Features, machines: Machines, sizes: SizeModel, rows: Destinations, slowdown: Floats
) -> Iterator[tuple[Floats, Floats]]:
    """For each node: the step's time on the rows without its loading, and the share of it that goes with the chip."""
    job = rows.job
    home, before = jobs.pool, jobs.chips[job]
    now = seconds_per_byte(jobs.per_group, jobs.groups, machines.inside[home], machines.between[home])
    there = seconds_per_byte(rows.per_group, rows.groups, machines.inside[rows.pool], machines.between[rows.pool])
    copied = _copies(sizes.passes, jobs.chips, machines.memory[home])
    copied_there = _copies(sizes.passes[job], rows.chips, machines.memory[rows.pool])
    share = np.where(jobs.keeps_batch[job], before / rows.chips, 1.0)
    work, chip = jobs.shares.work[job], slowdown * share**BATCH_EXPONENT
    waits = _waits(rows.chips) - _waits(before)
    lost = {loss: np.exp(loss * waits) for loss, _ in _LOSSES}
    host = jobs.shares.host[job]
    found = None
    for step, loss, _ in _NODES:
        if found is None or found[0] != step:
            summed = sizes.bytes_a_second(step)
            moved = np.minimum(summed, machines.memory[home] / LEAST_PASSES)
            before_squared = (1.0 + moved * copied) ** 2 + (summed * now) ** 2
            busy = chip + moved[job] * copied_there
            squared = busy**2 + (summed[job] * there) ** 2
            ratio = np.sqrt(squared / before_squared[job])
            hidden = chip * busy / squared
            found = (step, ratio, hidden)
        _, ratio, hidden = found
        linked = work * ratio * lost[loss]
        time = host + linked
        yield time, linked / time * hidden


def _copies(passes: Floats, chips: Ints, memory: Floats) -> Floats:
    """Seconds for each byte that several chips sum, in the memory of each."""
    return np.where(chips > 1, passes / memory, 0.0)


def _waits(chips: Ints) -> Floats:
    doublings = np.log2(chips)
    return np.where(chips > 1, 1.0 + DOUBLING * (doublings - 1.0), 0.0)


def _load(jobs: Features, job: Ints, rows: Destinations) -> Floats:
    """How much more each loader has to load for a step: a pod has one, whatever its chips."""
    share = np.where(jobs.keeps_batch[job], 1.0, rows.chips / jobs.chips[job])
    pods: Floats = share * jobs.groups[job] / rows.groups
    return pods


def _implied_log_volume(jobs: Features, machines: Machines, passes: Floats, rows: Ints) -> Floats:
    """Log of the bytes a second of work that the exposed communication would come from, were nothing else in it."""
    home = jobs.pool[rows]
    spb = seconds_per_byte(jobs.per_group[rows], jobs.groups[rows], machines.inside[home], machines.between[home])
    work = jobs.shares.work[rows]
    chip = np.maximum(work - np.maximum(jobs.shares.exposed[rows], RESOLUTION), 0.2 * work)
    # Of the time on the chip, copies included.
    sync = np.sqrt((work / chip) ** 2 - 1.0)
    copied = _copies(passes[rows], jobs.chips[rows], machines.memory[home])
    implied: Floats = np.log(sync / np.maximum(spb - sync * copied, 0.2 * spb))
    return implied


def _exposed(jobs: Features, machines: Machines, model: SizeModel, rows: Ints) -> Floats:
    """Log-likelihood of the exposed communication at each node. A trace tells what no kernel hides, and not by how much
    kernels beside collectives are slower: it may well be less than what sharing costs, but hardly more."""
    home = jobs.pool[rows]
    spb = seconds_per_byte(jobs.per_group[rows], jobs.groups[rows], machines.inside[home], machines.between[home])
    copied = _copies(model.passes[rows], jobs.chips[rows], machines.memory[home])
    waits, work, exposed = _waits(jobs.chips[rows]), jobs.shares.work[rows], jobs.shares.exposed[rows]
    found = []
    for step, loss, _ in _NODES:
        bytes_a_second = model.bytes_a_second(step)[rows]
        busy = 1.0 + np.minimum(bytes_a_second, machines.memory[home] / LEAST_PASSES) * copied
        cost = work * (1.0 - busy / (np.sqrt(busy**2 + (bytes_a_second * spb) ** 2) * np.exp(loss * waits)))
        off = cost - exposed
        found.append(-0.5 * (off / np.where(off > 0.0, 0.06 + 0.5 * exposed, 0.02 + 0.2 * exposed)) ** 2)
    return np.array(found).T


def _normalised(logs: Floats) -> Floats:
    chance = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares: Floats = chance / chance.sum(axis=1, keepdims=True)
    return shares
