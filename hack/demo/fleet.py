"""The story of a fleet: twelve jobs want more chips than there are, and two give some of theirs until they are free."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from demo.job import Job
from demo.plain import plainly
from demo.stage import Stage, apply
from demo.story import MOVE_SECONDS, START_SECONDS, Say, expect, paid, placed, wait
from devcluster import simulated
from rightpool.contract import GROUP, VERSION

NAMESPACE: Final = "fleet"
_PREFIX: Final = "simulation.rightpool.dev/"
# Without the labels of real platforms: by those the pools of the other stories have their nodes.
_POOLS: Final = (
    (simulated.Pool("team-a100", "nvidia.com/gpu", 8, {_PREFIX + "accelerator": "A100-SXM4-80GB"}), 2),
    (simulated.Pool("team-a10g", "nvidia.com/gpu", 4, {_PREFIX + "accelerator": "A10G-24GB"}), 4),
    (simulated.Pool("team-v5e", "google.com/tpu", 8, {_PREFIX + "accelerator": "TPU-v5e"}), 2),
)
"""With the number of nodes."""
_CHIPS: Final = sum(pool.chips * nodes for pool, nodes in _POOLS)
# Pool, program and chips of each job. Together they have all chips.
_JOBS: Final = {
    "ranking": ("team-a100", "bert", 4),
    "vision": ("team-a100", "resnet50", 4),
    "search": ("team-a100", "bert", 4),
    "maps": ("team-a100", "resnet50", 2),
    "ads": ("team-a100", "bert", 2),
    "photos": ("team-a10g", "resnet50", 4),
    "video": ("team-a10g", "resnet50", 4),
    "mail": ("team-a10g", "bert", 4),
    "chat": ("team-a10g", "bert", 4),
    "code": ("team-v5e", "mpt-1b", 8),
    "speech": ("team-v5e", "mpt-1b", 8),
}
_GIVERS: Final = ("ranking", "vision")
# It comes last, and runs for 20 s.
_URGENT: Final = ("team-a100", "resnet50", 4)


def fleet(stage: Stage, say: Say) -> Job:
    """All chips are taken when a job comes. The plan makes room for it, and then gives back what it took."""
    for pool, nodes in _POOLS:
        simulated.ensure_nodes(stage.kubectl, pool, nodes)
    apply(stage, "fleet.yaml")
    wait("the operator sees the pools", lambda: _counted(stage) == _CHIPS)
    stage.kubectl.apply([_job(name, *asked) for name, asked in _JOBS.items()])
    if stage.tells is plainly:
        stage = replace(stage, tells=_briefly)
    givers = [stage.watch(NAMESPACE, name, say) for name in _GIVERS]
    for giver in givers:
        job = giver.until("it runs and is measured", _measured, START_SECONDS)
        expect(job.chips == 4, "it should have started on 4 chips", job)
    wait("all jobs run", lambda: all(placed(Job(one)) for one in _items(stage, "profiledjobs", "-n", NAMESPACE)))
    give = " and ".join(_GIVERS)
    say(f"fleet: {len(_JOBS)} jobs have all {_CHIPS} chips of three pools; {give} let others have half of theirs")

    came = time.monotonic()
    stage.kubectl.apply([_job("urgent", *_URGENT, duration="20s")])
    urgent = stage.watch(NAMESPACE, "urgent", say)
    urgent.until("it waits", lambda j: j.condition("Placed").get("reason") == "WaitingForCapacity", START_SECONDS)
    worth: list[str] = []

    def both() -> list[Job]:
        return [giver.read() for giver in givers]

    def room_is_made() -> bool:
        worth.extend(_worth(stage))
        return any(job.phase not in (None, "Planned") for job in both())

    wait("room is made for it", room_is_made)
    for dollars in worth[-1:]:
        say(f"fleet: until then one more chip of {_URGENT[0]} would have brought ${dollars} an hour beyond its price")
    say("fleet: $ rightpool recommend --fleet")
    for line in stage.rightpool("recommend", "--fleet").splitlines():
        if line.startswith("WAVE") or f" {NAMESPACE} " in line:
            say(f"fleet:   {line.rstrip()}")
    urgent.until("it runs", lambda j: placed(j) or _ended(j), START_SECONDS)
    say(f"fleet: urgent runs as planned, {time.monotonic() - came:.0f} s after it came")
    for giver in givers:
        giver.until("it has given way", _gave, START_SECONDS)
    urgent.until("it ends", _ended, START_SECONDS)
    ended = time.monotonic()
    wait("both have their chips again", lambda: all(job.chips == 4 and placed(job) for job in both()))
    say(f"fleet: {give} have 4 chips each again, {time.monotonic() - ended:.0f} s after urgent ended")
    first, second = (giver.until("its growth is verified", paid, MOVE_SECONDS) for giver in givers)
    expect(second.chips == first.chips == 4, "both should have stayed on 4 chips", second)
    return first


def _gave(job: Job) -> bool:
    """Whether it has been made half as large for others. It may have grown again."""
    return any(entry["reason"] == "FleetGains" and entry["to"]["chips"] == 2 for entry in job.history)


def _ended(job: Job) -> bool:
    return job.condition("Completed").get("status") == "True"


def _worth(stage: Stage) -> list[str]:
    """Dollars an hour of one more chip of the pool that is wanted; nothing where the plan has no price."""
    policy = stage.kubectl.json("get", "placementpolicy", "default")
    return [each["perChipHour"] for each in policy["status"].get("chips", []) if each["pool"] == _URGENT[0]]


def _briefly(job: Job) -> Iterator[tuple[str, str, str]]:
    """Of a job that gives way how it moves, of the other where it is."""
    topic = "move" if job.document["metadata"]["name"] in _GIVERS else "place"
    return (line for line in plainly(job) if line[0] == topic)


def _measured(job: Job) -> bool:
    return placed(job) and job.condition("Profiled").get("status") == "True"


def _items(stage: Stage, *which: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = stage.kubectl.json("get", *which)["items"]
    return items


def _counted(stage: Stage) -> int:
    """Chips of the pools of this story, as the operator has counted them."""
    ours = {pool.name for pool, _ in _POOLS}
    pools = [pool for pool in _items(stage, "acceleratorpools") if pool["metadata"]["name"] in ours]
    return sum(pool.get("status", {}).get("chips", {}).get("total", 0) for pool in pools)


def _job(name: str, pool: str, program: str, chips: int, duration: str | None = None) -> dict[str, Any]:
    """A job of pods with two chips each. Those that give way are in a hurry all the same, and save for ten seconds, so
    that the plan can be read meanwhile."""
    gives = name in _GIVERS
    annotations = {"workload": program, "warm-up": "5s", "checkpoint-delay": "10s"}
    annotations |= {} if duration is None else {"duration": duration}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "ProfiledJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "workload": {
                "job": {
                    "replicas": chips // 2,
                    "chipsPerReplica": 2,
                    "template": {
                        "metadata": {"annotations": {_PREFIX + key: value for key, value in annotations.items()}},
                        "spec": {"containers": [{"name": "trainer", "image": f"example.com/{program}:1"}]},
                    },
                }
            },
            "elasticity": {"minChips": 2 if gives else chips, "maxChips": chips, "batch": "PerChip"},
            "targets": {"objective": "MinimizeTime" if gives else "MinimizeCost"},
            "placement": {"pools": {"allow": [pool]}},
            "checkpoint": {"mode": "Signal", "timeout": "45s"},
            "profiling": {"interval": "2s", "window": "15s"},
            "adaptation": {"mode": "Auto", "yield": "Move" if gives else "Never"},
        },
    }
