"""The diagnosis: one bottleneck, with its evidence.

The rules are asked in order: faults of chips first, then ranks that hold up others, then where chips wait, and last
what limits their work. The first that applies gives the class.
"""

from __future__ import annotations

from rightpool.hardware.accelerator import Accelerator
from rightpool.profiles.bottleneck import Bottleneck, Case, Diagnosis
from rightpool.profiles.findings import Finding, NothingMeasured, ReadingsTooOld, SharedChip, WindowNotFull
from rightpool.profiles.health import memory_is_short, no_room_for_more, throttled, unhealthy
from rightpool.profiles.profile import WARM_UP_STEPS, Profile, Steadiness
from rightpool.profiles.ranks import straggler
from rightpool.profiles.roofs import at_a_roof, on_chip
from rightpool.profiles.sample import Field
from rightpool.profiles.shares import decompose
from rightpool.profiles.waiting import idle, unused, waiting, without_shares


def diagnose(profile: Profile, accelerator: Accelerator, before: Bottleneck | None = None) -> Diagnosis:
    """The bottleneck of a job, or Unknown with the missing counters.

    `before` is the previous diagnosis, for hysteresis. Busy time alone is no evidence for Compute: a loop of
    host-to-device copies is 100% busy and computes nothing.
    """
    values = {field: reading.value for field, reading in profile.readings.items()}
    found = _once(Case(profile, values, accelerator, before))
    # A class that is new changes the thresholds for the next window. What holds under its own is taken.
    for _ in Bottleneck:
        if found.bottleneck is before or profile.steadiness is not Steadiness.STEADY:
            break
        before = found.bottleneck
        found = _once(Case(profile, values, accelerator, before))
    return found


def _once(case: Case) -> Diagnosis:
    profile = case.profile
    fault = unhealthy(case)  # a state, not a rate: it needs no full window
    if fault is not None and profile.steadiness in (Steadiness.STEADY, Steadiness.WARMING_UP):
        return fault
    if profile.steadiness is not Steadiness.STEADY:
        return _unsteady(profile)
    if profile.shared is not None:
        return Diagnosis(Bottleneck.UNKNOWN, SharedChip(profile.shared))
    shares = decompose(profile)
    found = (
        idle(case)
        or throttled(case)
        or unused(case)
        or straggler(case)
        or memory_is_short(case)
        or (shares and at_a_roof(case, shares))
        or (waiting(case, shares) if shares else without_shares(case))
        or on_chip(case, shares)
    )
    return no_room_for_more(case, found) or found


def _unsteady(profile: Profile) -> Diagnosis:
    finding: Finding
    if profile.steadiness is Steadiness.ABSENT:
        finding = NothingMeasured()
    elif profile.steadiness is Steadiness.STALE:
        finding = ReadingsTooOld()
    else:
        steps = profile.value(Field.STEPS)
        few = steps is not None and steps < WARM_UP_STEPS
        finding = WindowNotFull(profile.covered, profile.window, steps if few else None)
    return Diagnosis(Bottleneck.UNKNOWN, finding)
