"""NVIDIA chips of this machine for the pods of the container node: whole, or shares of one chip by MPS.

A share is a part of a chip's multiprocessors. It has the whole memory and its own speed, so that two shares of one chip
are two accelerators to choose between. Nothing keeps a whole chip and its shares from being given out at the same time.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devcluster import build, deps, host
from devcluster.kubectl import Kubectl
from devcluster.processes import Program, Supervisor
from devcluster.progress import Progress
from devcluster.spec import NODE_NAME, Cluster, DevclusterError

START_SECONDS: Final = 300.0
DRIVER: Final = Path("/usr/local/nvidia")  # where container platforms mount the driver's programs and libraries
_SHARED_MEMORY: Final = Path("/dev/shm")  # where clients of MPS meet its server
_CONTROL_NODES: Final = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
_MPS: Final = "mps-"  # names of programs begin so
_PLUGIN: Final = "gpu-"
_OURS: Final = (_MPS, _PLUGIN)
_OFFER: Final = re.compile(r"(?P<resource>[a-z0-9.-]+/[A-Za-z0-9._-]+)=(?P<chips>\d+(,\d+)*)(@(?P<percent>\d+))?")


@dataclass(frozen=True)
class Offer:
    """chips: numbers of the device nodes. percent: share of the chip's multiprocessors; None: whole chips."""

    resource: str
    chips: tuple[int, ...]
    percent: int | None = None

    @classmethod
    def read(cls, text: str) -> "Offer":
        """From RESOURCE=CHIP[,CHIP…][@PERCENT]. Raises ValueError."""
        matched = _OFFER.fullmatch(text)
        if matched is None:
            raise ValueError(f"{text} is not RESOURCE=CHIPS or RESOURCE=CHIP@PERCENT, such as nvidia.com/gpu=0,1")
        chips = tuple(int(chip) for chip in matched["chips"].split(","))
        percent = None if matched["percent"] is None else int(matched["percent"])
        if percent is not None and (len(chips) > 1 or not 1 <= percent <= 100):
            raise ValueError(f"{text}: a share is of one chip, and 1 to 100 percent of it")
        return cls(matched["resource"], chips, percent)


def up(cluster: Cluster, offers: Sequence[Offer], progress: Progress) -> None:
    """Offer these chips to the node's pods, and no others, and wait until the node has them. Repeating it changes
    nothing."""
    if not host.is_root():
        raise DevclusterError("chips for pods need the container node, and the container node needs root")
    for chip in sorted({chip for offer in offers for chip in offer.chips}):
        if not _device(chip).exists():
            raise DevclusterError(f"there is no {_device(chip)}: `nvidia-smi -L` lists the chips of this machine")
    build.ensure([build.GPU_DEVICE_PLUGIN], progress)
    supervisor = Supervisor(cluster.state)
    wanted = programs(cluster, offers)
    withdraw(supervisor, wanted)
    for program in wanted:
        did = supervisor.ensure(program)
        if did is not None:
            progress.say(f"{program.name} {did}")
    for program in wanted:
        supervisor.wait(program, seconds=START_SECONDS)


def withdraw(supervisor: Supervisor, wanted: Sequence[Program]) -> None:
    """End what offered other chips before: the node then has none of them."""
    kept = {program.name for program in wanted}
    names = (record.name for record in supervisor.records())
    supervisor.stop([name for name in names if name.startswith(_OURS) and name not in kept])


def programs(cluster: Cluster, offers: Sequence[Offer]) -> tuple[Program, ...]:
    """MPS for each chip that is shared, and a device plugin for each resource."""
    shared = sorted({offer.chips[0] for offer in offers if offer.percent is not None})
    return (*(_mps(cluster, chip) for chip in shared), *(_plugin(cluster, offer) for offer in offers))


def _device(chip: int) -> Path:
    return Path(f"/dev/nvidia{chip}")


def _pipe(cluster: Cluster, chip: int) -> Path:
    return host.mps_folder(cluster) / f"chip-{chip}"


def _mps(cluster: Cluster, chip: int) -> Program:
    """One for each chip: its clients know the chip as their first, and so must the server."""
    control = deps.find("nvidia-cuda-mps-control")
    if control is None:
        raise DevclusterError("nvidia-cuda-mps-control is missing: it comes with NVIDIA's driver")
    pipe = _pipe(cluster, chip)
    pipe.mkdir(parents=True, exist_ok=True)
    pipe.chmod(0o777)  # the server runs as the user of its clients, and writes here
    return Program(
        f"{_MPS}{chip}",
        (control, "-f"),
        environment={
            "PATH": deps.search_path(),
            "CUDA_VISIBLE_DEVICES": str(chip),
            "CUDA_MPS_PIPE_DIRECTORY": str(pipe),
            "CUDA_MPS_LOG_DIRECTORY": str(pipe),
        },
        ready=(pipe / "control").exists,
    )


def _plugin(cluster: Cluster, offer: Offer) -> Program:
    mounts = [f"{DRIVER}:{DRIVER}:ro"] if DRIVER.exists() else []
    variables: dict[str, str] = {}
    if offer.percent is not None:
        pipe = _pipe(cluster, offer.chips[0])
        mounts += [f"{pipe}:{pipe}", f"{_SHARED_MEMORY}:{_SHARED_MEMORY}"]
        variables = {
            "CUDA_MPS_PIPE_DIRECTORY": str(pipe),
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(offer.percent),
        }
    kubectl = Kubectl(cluster.kubeconfig)
    path = offer.resource.replace(".", r"\.")

    def offered() -> bool:
        allocatable = f"--output=jsonpath={{.status.allocatable.{path}}}"
        return kubectl("get", "node", NODE_NAME, allocatable) == str(len(offer.chips))

    return Program(
        f"{_PLUGIN}{offer.resource.replace('/', '-')}",
        (
            str(build.path(build.GPU_DEVICE_PLUGIN)),
            f"-resource={offer.resource}",
            f"-chips={','.join(str(_device(chip)) for chip in offer.chips)}",
            f"-shared={','.join(node for node in _CONTROL_NODES if Path(node).exists())}",
            f"-mounts={','.join(mounts)}",
            f"-variables={','.join(f'{name}={value}' for name, value in variables.items())}",
        ),
        ready=offered,
    )
