"""The interface of a kind of child: what a Revision becomes in the cluster.

Everything that differs from kind to kind is behind it. A new kind is one module beside this one, its row in the
registry, its field in `api.workload.Workload` and its rights in the chart, which tests compare with the registry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from rightpool.api.kubernetes import Resource
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.api.value_object import value_object
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.abilities import Abilities
from rightpool.workloads.injection import Injection
from rightpool.workloads.jobs_of_set import JobsOfSet
from rightpool.workloads.metadata import as_new
from rightpool.workloads.owner import Owner
from rightpool.workloads.pod_set import PodSet
from rightpool.workloads.rendezvous import Hosts

W = TypeVar("W")
A = TypeVar("A", covariant=True)


class Unable(Exception):
    """An object can't become a Revision where it is. The message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Failures(NamedTuple):
    """How often the pods of a child have failed, and may."""

    counted: int
    """Those that count."""

    allowed: int
    """With more it has failed."""

    limit: str
    """The field of the workload that says how many are allowed."""

    exceeded: bool = False
    """Whether the child has failed because its pods did more often."""


@value_object
class ChildState:
    """The state of a child by its own spec and status.

    Fields that all kinds have in common (names, labels, owner, deletion) are in ChildFacts.
    """

    suspended: bool
    """Whether it is suspended, and so has no pods."""

    succeeded: bool
    """Whether it has ended successfully."""

    failed: bool
    """Whether it has failed for good."""

    failure: str | None = None
    """Why it failed, by Kubernetes' message."""

    started_at: float | None = None
    """Unix seconds of its last start. None before the first start, or while it is suspended."""

    ending: bool = False
    """Whether its outcome is decided but not reported yet, because its pods are still ending."""

    failures: Failures | None = None
    """How often its pods may fail; None where its kind counts no failures."""

    role: str = ""
    """The role of its scaled pods, by their label. Other pods neither have chips nor count."""

    expires: bool = False
    """Whether Kubernetes deletes it some time after its end."""

    members: str = ""
    """What `owner_of` gives of its pods, where that is not its uid."""

    pods: int | None = None
    """How many scaled pods it is to have, of a kind whose number changes while it runs; else None."""

    unit: int = 1
    """How many pods its spec counts as one, such as those of a group."""

    stopping: bool = False
    """Whether its controller counts pods still, although it is suspended."""


class Companion(Protocol):
    """An object of its own for each child, which its child refers to: made of one that the workload names, with what
    the child itself can't say of its pods."""

    @property
    def resource(self) -> Resource:
        """The API resource of companions."""
        ...

    def named(self, workload: Any) -> tuple[Resource, str]:
        """The resource and the name of what a companion is made of."""
        ...

    def known(self, workload: Any, body: Mapping[str, Any]) -> Any:
        """The workload as `build` takes it, here and of the kind, now that this object was read. Raises
        workloads.template.InvalidTemplate."""
        ...

    def build(
        self, owner: Owner, workload: Any, ref: Revision, pool: Pool, injection: Injection | None
    ) -> dict[str, Any]:
        """The manifest of the companion of a Revision's child, which has the child's name."""
        ...

    def without(self, workload: Any, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The child for a dry run, where its companion is not there yet."""
        ...


class Adoptable(Protocol[A]):
    """Of objects that somebody else has made: what they run, which pods are theirs, and what can be changed of them."""

    @property
    def queues(self) -> bool:
        """Whether Kueue reads an object of its queue anew that was changed while it is stopped."""
        ...

    def abilities(self, body: Mapping[str, Any]) -> Abilities:
        """What can be changed of this object while it is suspended."""
        ...

    def settings(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """By JSON pointer, the value of each field that `change` may set; None where it has none."""
        ...

    def change(self, body: Mapping[str, Any], ref: Revision, pool: Pool) -> dict[str, Any]:
        """The object as this Revision, in nothing else than in `settings`. It is suspended before and after.

        Raises Unable, and workloads.template.InvalidTemplate where it contradicts the pool.
        """
        ...

    def anew(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The manifest of a new object like this one, of the same name."""
        return as_new(body)

    def adopted(self, body: Mapping[str, Any]) -> A:
        """The workload that an object of this kind is which somebody else has made: how many pods it asks for, with how
        many chips each, and their template without these. Raises workloads.template.InvalidTemplate where none of its
        pods asks for chips."""
        ...

    def members(self, body: Mapping[str, Any]) -> tuple[str, str]:
        """The label, and its value, by which the pods of this object are listed. Its own controllers set it.

        Others may set it too: `owns` says of a pod whether it is a member.
        """
        ...

    def owns(self, pod: Mapping[str, Any], name: str, uid: str) -> bool:
        """Whether a pod with this metadata is of the object of this name and uid, by labels of the kind's own
        controllers and by what controls the pod."""
        ...

    def trained(self, body: Mapping[str, Any], role: str) -> Mapping[str, str]:
        """The labels that the pods of this object have which train, and no others: the set of that name. Those of an
        object that is made anew have them, too."""
        return dict([self.members(body)])

    def role_of(self, pod: Mapping[str, Any]) -> str:
        """The pod set that a pod with this metadata is of, by labels of the kind's own controllers."""
        ...

    def jobs(self, body: Mapping[str, Any]) -> JobsOfSet | None:
        """The Jobs that JobSet's controller makes of this object; None where it makes none."""
        return None

    def shaped(self, pointer: str, value: Any) -> bool:
        """Whether a value of one of `settings` is of the type that the API server takes there."""
        ...


class Kind(Protocol[W]):
    """One kind of child, of a workload of its own schema. Members that most kinds have in common are written here."""

    @property
    def field(self) -> str:
        """The field of spec.workload that selects this kind."""
        ...

    @property
    def resource(self) -> Resource:
        """The API resource of its objects."""
        ...

    @property
    def optional(self) -> bool:
        """Whether its definition may not be installed. The kind is off where it is not."""
        ...

    @property
    def companion(self) -> Companion | None:
        """Of what its children need beside them; None where a child says all itself."""
        return None

    @property
    def adoption(self) -> Adoptable[W] | None:
        """Of what its objects are that somebody else has made; None where they can't be adopted."""
        ...

    def pod_sets(self, workload: W) -> tuple[PodSet, ...]:
        """What the workload's pods are made from; one set is scaled. Raises workloads.template.InvalidTemplate."""
        ...

    def with_template(self, workload: W, template: Mapping[str, Any]) -> W:
        """The same workload with another template of its scaled pods."""
        ...

    def lifetime(self, workload: W) -> int | None:
        """Seconds after its end when Kubernetes is to delete the child; None: it is kept."""
        return None

    def hosts(self, workload: W, child: str, replicas: int) -> Hosts | None:
        """The names of the pods of this child under a Service that the operator makes before they start.

        None where there is none to be made: for a single pod, and where the kind's own controller makes one.
        """
        return None

    def fronts(self, owner: Owner, workload: W, answer: Collection[int], beside: int | None) -> list[dict[str, Any]]:
        """The Services at which requests come in, and go to the Revisions with these numbers; none of a kind that
        answers none. beside: number of the one that an HTTPRoute sends a share to."""
        return []

    def build(
        self,
        owner: Owner,
        workload: W,
        queue_name: str | None,
        ref: Revision,
        pool: Pool,
        injection: Injection | None,
        suspend: bool = False,
    ) -> dict[str, Any]:
        """The manifest of a Revision's new child, with the templates of `workloads.pods.pod_templates`. `injection` is
        None if profiling is off.

        With `suspend`, or in a queue, it is created without pods. Raises workloads.template.InvalidTemplate.
        """
        ...

    def made_of(self, body: Mapping[str, Any]) -> tuple[tuple[Resource, Mapping[str, Any]], ...]:
        """Objects that the kind's own controller makes of this child before there are pods, with their resources.

        The API server may refuse them for what it does not look at in the child, and only an Event would say so.
        """
        return ()

    def observe(self, body: Mapping[str, Any]) -> ChildState:
        """Read the state of an object of this kind."""
        ...

    def suspension(self, suspend: bool, placement: Placement, unit: int) -> dict[str, Any]:
        """The fields that, applied to an existing child of this unit, stop its pods or start those of `placement`."""
        return {"spec": {"suspend": suspend}}

    def expiry(self, seconds: int) -> dict[str, Any]:
        """The fields that, applied to a child that has ended, have Kubernetes delete it after so many seconds."""
        ...

    def owner_of(self, pod: Mapping[str, Any], child: str) -> str:
        """The uid of the object of this kind and name that a pod with this metadata belongs to; empty if it does not.

        Where a controller stands between the two, as a Job does between a JobSet and its pods, labels say it that the
        kind's own controller sets. The uid must be among them, or a pod of an earlier child of the name would count as
        the new one's.
        """
        ...


def adoption_of(kind: Kind[W]) -> Adoptable[W]:
    """Of what the kind's objects are that somebody else has made. Raises Unable where they can't be adopted."""
    if kind.adoption is None:
        name = kind.resource.kind
        raise Unable(f"a {name} can't be adopted: wrap it in spec.workload.{kind.field}")
    return kind.adoption


def condition_of(conditions: Iterable[Mapping[str, Any]], kind: str, status: str = "True") -> Mapping[str, Any] | None:
    """The condition of an object of Kubernetes, if it has this status."""
    return next((c for c in conditions if c.get("type") == kind and c.get("status") == status), None)


def message_of(condition: Mapping[str, Any] | None) -> str | None:
    """What a condition says; None without one."""
    if condition is None:
        return None
    return f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ")


def condition_is_true(conditions: Iterable[Mapping[str, Any]], kind: str) -> bool:
    """Whether an object of Kubernetes has this condition, and it is True."""
    return condition_of(conditions, kind) is not None


def resumed_at(about: Mapping[str, Any], spec: Mapping[str, Any], conditions: Iterable[Mapping[str, Any]]) -> Any:
    """When an object with the condition Suspended was last resumed; None while it is suspended. Its controller may
    never have seen it suspended: then when it was made."""
    if spec.get("suspend") or condition_is_true(conditions, "Suspended"):
        return None
    resumed = condition_of(conditions, "Suspended", "False")
    return about.get("creationTimestamp") if resumed is None else resumed.get("lastTransitionTime")
