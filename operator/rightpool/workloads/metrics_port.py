"""The port of a server's metrics, which has a name in its pods."""

from typing import Any, Final

from rightpool.workloads.template import InvalidTemplate, chip_container_of, containers_of, objects_in

_METRICS: Final = "metrics"


def name_metrics_port(template: dict[str, Any], chip_container: str | None, port: int) -> None:
    """The port of its metrics has a name, by which it is found to be read: by Prometheus and by the chart's
    NetworkPolicy."""
    ports = [objects_in(one, "ports", f"container {one['name']}", name="") for one in containers_of(template)]
    named = [one for own in ports for one in own if one.get("name") == _METRICS]
    if any(one.get("containerPort") != port for one in named):
        raise InvalidTemplate(
            f"its port {_METRICS} must be {port}, as workload.server.metrics.port says: correct one, or rename the port"
        )
    if named:
        return
    chip_container_of(template, chip_container)["ports"].append({"name": _METRICS, "containerPort": port})
