"""The command line of `python -m devcluster`; `--help` lists its commands."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from devcluster import (
    build,
    cluster,
    current,
    deps,
    gateway,
    gpu,
    host,
    images,
    kinds,
    kueue,
    monitoring,
    network_policies,
    simulated,
)
from devcluster.kubectl import Kubectl
from devcluster.processes import Supervisor
from devcluster.progress import Progress
from devcluster.spec import NAMED, Cluster, DevclusterError, named

Command = Callable[[argparse.Namespace, Progress], int]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    command: Command = options.command
    try:
        return command(options, Progress())
    except DevclusterError as error:
        print(f"devcluster: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `status | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("devcluster: interrupted; the same command goes on where this one stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="devcluster", description="A real Kubernetes on this machine, without Docker."
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--name", default="demo", choices=list(NAMED), help="which cluster (default: demo)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Command, text: str, *, of_cluster: bool = True) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text, parents=[shared] if of_cluster else [])
        made.set_defaults(command=command)
        return made

    add("up", _up, "start or repair the cluster").add_argument(
        "--use-current", action="store_true", help="check and use the cluster that KUBECONFIG names instead"
    )
    add("down", _down, "remove the cluster and everything it made on this machine")
    add("status", _status, "what runs, and how to use it; exit code 0 only if everything does")
    add("env", _env, "shell lines that point kubectl and helm at the cluster")
    kubectl = add("kubectl", _kubectl, "run kubectl against the cluster: `kubectl --name test -- -n default get pods`")
    kubectl.add_argument("arguments", nargs=argparse.REMAINDER)
    image = add("images", _images, "load image tars into the container node, or list its images")
    image.add_argument("action", choices=["load", "list", "base"])
    image.add_argument("files", nargs="*", type=Path, help="OCI or Docker image tars")
    nodes = add("nodes", _nodes, "change the size of a simulated pool")
    nodes.add_argument("action", choices=["set"])
    nodes.add_argument("--pool", required=True, choices=list(simulated.POOLS))
    nodes.add_argument("--count", required=True, type=int)
    add("gateway", _gateway, "install Contour and Envoy as a Gateway, or repair it; built where it is not (needs root)")
    add("kueue", _kueue, "install Kueue in the cluster, or repair it; built where it is not (needs root)")
    for kind in kinds.CONTROLLERS:
        needed = "".join(f", and {one.title}, which it needs" for one in kind.needs)
        text = f"install {kind.title}{needed}, or repair it; built where it is not"
        add(kind.name, _kind, text).set_defaults(kind=kind)
    policies = add("network-policies", _network_policies, "enforce NetworkPolicies by kube-router (needs root)")
    policies.add_argument("kube_router", type=Path, metavar="KUBE_ROUTER", help="its program")
    chips = add("gpu", _gpu, "offer NVIDIA chips of this machine, or shares of one, to the container node's pods")
    chips.add_argument(
        "offers",
        nargs="+",
        type=_offer,
        metavar="RESOURCE=CHIPS[@PERCENT]",
        help="nvidia.com/gpu=0,1 offers two chips, example.com/half=0@50 half of the first one's multiprocessors",
    )
    built = add("build", _build, "build the components without starting anything", of_cluster=False)
    on_demand = [component.name for component in build.ON_DEMAND]
    built.add_argument("only", nargs="?", choices=on_demand, help="this one, which no other command builds by itself")
    add("deps", _deps, "install the Debian packages that are missing (needs root)", of_cluster=False)
    return parser


def _up(options: argparse.Namespace, progress: Progress) -> int:
    if options.use_current:
        print(f"export KUBECONFIG={shlex.quote(str(current.use(progress)))}")
        return 0
    running = cluster.up(named(options.name), progress)
    progress.say(f"cluster {options.name} is up; Prometheus: {running.prometheus_url}")
    if not running.with_node:
        progress.say(f"without root there is no container node: pods run only on simulated nodes ({_needs_node()})")
    print(f"export KUBECONFIG={shlex.quote(str(running.kubeconfig))}")
    return 0


def _needs_node() -> str:
    return "images, replay and real pods need it"


def _down(options: argparse.Namespace, progress: Progress) -> int:
    cluster.down(named(options.name))
    progress.say(f"cluster {options.name} is down; nothing is left of it")
    return 0


def _env(options: argparse.Namespace, progress: Progress) -> int:
    spec = _existing(options.name)
    print(f"export KUBECONFIG={shlex.quote(str(spec.kubeconfig))}")
    print(f'export PATH={shlex.quote(str(build.bin_dir()))}:"$PATH"')
    return 0


def _kubectl(options: argparse.Namespace, progress: Progress) -> int:
    spec = _existing(options.name)
    program = build.binary("kubectl")
    arguments = options.arguments[1:] if options.arguments[:1] == ["--"] else options.arguments
    os.execv(program, [program, f"--kubeconfig={spec.kubeconfig}", *arguments])


def _existing(name: str) -> Cluster:
    spec = named(name)
    if not spec.kubeconfig.exists():
        raise DevclusterError(f"cluster {name} is down; `python -m devcluster up --name {name}` starts it")
    return spec


def _images(options: argparse.Namespace, progress: Progress) -> int:
    if options.action == "base":
        layer = images.base_rootfs(progress)
        print(f"{layer.digest} {len(layer.blob) / 1e6:.1f} MB")
        return 0
    spec = _existing(options.name)
    if options.action == "load":
        if not options.files:
            raise DevclusterError("images load needs at least one file")
        for name in images.load(spec, options.files):
            progress.say(f"loaded {name}")
    else:
        print("\n".join(images.names(spec)))
    return 0


def _nodes(options: argparse.Namespace, progress: Progress) -> int:
    cluster.running(_existing(options.name)).set_nodes(options.pool, options.count)
    progress.say(f"pool {options.pool} has {options.count} nodes")
    return 0


def _gateway(options: argparse.Namespace, progress: Progress) -> int:
    progress.say(f"HTTPRoutes of Gateway {gateway.GATEWAY} answer at {gateway.up(_existing(options.name), progress)}")
    return 0


def _kueue(options: argparse.Namespace, progress: Progress) -> int:
    kueue.up(_existing(options.name), progress)
    progress.say(f"Kueue answers in cluster {options.name}")
    return 0


def _kind(options: argparse.Namespace, progress: Progress) -> int:
    kinds.up(options.kind, _existing(options.name), progress)
    progress.say(f"{options.kind.title} answers in cluster {options.name}")
    return 0


def _network_policies(options: argparse.Namespace, progress: Progress) -> int:
    network_policies.up(_existing(options.name), options.kube_router, progress)
    progress.say(f"NetworkPolicies hold in cluster {options.name}")
    return 0


def _offer(text: str) -> gpu.Offer:
    try:
        return gpu.Offer.read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _gpu(options: argparse.Namespace, progress: Progress) -> int:
    gpu.up(_existing(options.name), options.offers, progress)
    for offer in options.offers:
        progress.say(f"cluster {options.name} offers {len(offer.chips)} × {offer.resource}")
    return 0


def _build(options: argparse.Namespace, progress: Progress) -> int:
    for component in build.ON_DEMAND:
        if component.name == options.only:
            build.ensure([component], progress)
            print(build.path(component))
            return 0
    print(build.ensure(build.EVERYTHING if host.is_root() else build.CONTROL_PLANE, progress))
    return 0


def _deps(options: argparse.Namespace, progress: Progress) -> int:
    deps.install(progress)
    return 0


def _status(options: argparse.Namespace, progress: Progress) -> int:
    spec = named(options.name)
    if not spec.kubeconfig.exists():
        print(f"cluster {spec.name} is down; `python -m devcluster up --name {spec.name}` starts it")
        return 1
    supervisor = Supervisor(spec.state)
    root = host.is_root()
    healthy = True
    print(f"{'COMPONENT':<25}{'PID':<9}{'STATE':<16}PORTS")
    for program in cluster.programs(spec, root=root):
        record = supervisor.record(program.name)
        alive = record is not None and record.identity.alive()
        state = "dead"
        if alive:
            state = "running" if program.ready is None or program.ready() else "does not answer"
        healthy = healthy and state == "running"
        pid = str(record.identity.pid) if record is not None and alive else "-"
        print(f"{program.name:<25}{pid:<9}{state:<16}{', '.join(map(str, program.ports))}")
    print()
    healthy = _print_nodes(spec) and healthy
    print(f"\nexport KUBECONFIG={spec.kubeconfig}\nPrometheus: {monitoring.url(spec, root=root)}\nlogs: {spec.logs}")
    if root:
        print(f"a process on this machine is reached from pods and webhooks at {spec.host_ip}")
    else:
        print(f"no container node: that needs root ({_needs_node()})")
    if not healthy:
        print(f"not everything is up; `python -m devcluster up --name {spec.name}` repairs it")
    return 0 if healthy else 1


def _print_nodes(spec: Cluster) -> bool:
    try:
        print(
            Kubectl(spec.kubeconfig)(
                "get", "nodes", "--label-columns=simulation.rightpool.dev/pool", seconds=10
            ).rstrip()
        )
    except DevclusterError as error:
        print(f"nodes: {error}")
        return False
    return True
