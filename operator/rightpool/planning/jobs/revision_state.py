"""A Revision as the cluster shows it."""

from collections.abc import Mapping
from typing import NamedTuple

from rightpool.api.conditions import Reason
from rightpool.api.value_object import value_object


@value_object
class Crash:
    """How the program of a Revision failed last, while Kubernetes still starts it again."""

    count: int
    """Failures of its pods so far."""

    allowed: int | None
    """With more failures the child has failed; None where its kind sets no limit."""

    container: str
    """The name of the one that failed."""
    exit_code: int
    """128 and the signal's number where a signal ended it."""
    reason: str
    """Kubernetes' word, such as Error, OOMKilled or StartError."""

    at: float
    """Unix seconds; 0 where it is not known."""

    output: str = ""
    """The last lines of what it has written, or why it could not be started."""

    limit: str = ""
    """The field of the workload that says how many failures are allowed."""

    def __str__(self) -> str:
        return f"container {self.container} exited with {self.exit_code} ({self.reason})"


@value_object
class EndingPod:
    """A pod that is being ended and is still there."""

    name: str
    """Of the pod."""
    node: str | None
    """None where it never had one."""

    due: float
    """Unix seconds when its grace period is over."""


class UnseenPod(NamedTuple):
    """A pod that its scheduler has not said anything of."""

    since: float
    """Unix seconds when it was made."""
    scheduler: str
    """Its schedulerName."""


class PodFailure(NamedTuple):
    """A pod whose program failed."""

    bound_at: float
    """Unix seconds when it was given its node."""
    at: float
    """Unix seconds when it failed."""


class Undoing(NamedTuple):
    """That a change of the operator was taken back."""

    manager: str
    """Who has done it, as its writes name their field manager; empty where that is not known."""
    field: str
    """JSON pointer to what was changed back."""


@value_object
class RevisionState:
    """What the cluster shows of a Revision's child."""

    revision: int
    """Its number."""
    exists: bool
    """Whether the child is there. Pods may be there without it."""
    deleting: bool = False
    """Whether the child is being deleted; its pods may still run."""
    suspended: bool = False
    """Whether the child is suspended, and so has no pods."""

    held: bool = False
    """Whether the operator has stopped it, or its queue for it."""

    adopted: bool = False
    """Whether somebody else has made it. Then it stays where Revisions go: each is a state of it."""

    edited: bool = False
    """Whether its user has changed it since the operator did."""

    undone: Undoing | None = None
    """Who has taken back what the operator has changed of it; None where nobody has."""

    queue: str | None = None
    """Of what somebody else has made, the queue that says when it runs."""

    active: int = 0
    """Pods that are neither succeeded nor failed nor gone. Terminating ones count."""

    others: int = 0
    """Of these, pods that are not scaled, such as a driver. All that follows is of the scaled pods, which have the
    chips."""

    running: int = 0
    """Pods with all containers ready."""

    pods: int | None = None
    """Scaled pods that its child asks for, of a kind whose number changes while it runs; else None."""

    completed: int = 0
    """Pods that have succeeded, while others may still run."""

    on_nodes: int | None = None
    """Pods on a node that have not ended, which hold chips whether they run or not. None: as many as run."""

    bound_at: float | None = None
    """Unix seconds when these were given their nodes, the mean over pods."""

    evicted: int = 0
    """Pods that Kubernetes ends, though the child is to run on."""

    succeeded: bool = False
    """Whether the child has ended, and well."""
    failed: bool = False
    """Whether the child has failed for good."""

    blocked: str | None = None
    """Why pods do not run (unschedulable, image). None where nothing is known to block."""

    unschedulable_since: float | None = None
    """Unix seconds since when Kubernetes finds no node for one of its pods; None where it does."""

    unseen: UnseenPod | None = None
    """Of the pods that no scheduler has looked at, that which was made first. After a minute `blocked` says so."""

    nodes: Mapping[str, int] | None = None
    """Its living pods by node; pods without a node are not in it. None where that is not known."""

    failure: str | None = None
    """Why it failed."""

    pod_fault: str | None = None
    """Why the last one of its pods failed that Kubernetes ended or its node did not take."""

    unready: str | None = None
    """What Kubernetes says of containers of its pods that are not ready, such as whose readinessProbe fails."""

    crash: Crash | None = None
    """How its program failed last; None where it has not, and where the child has ended."""

    failures_allowed: int | None = None
    """How often its pods may fail, where it has failed because they did more often; else None."""

    pod_failures: tuple[PodFailure, ...] = ()
    """Its pods whose program failed, but for those that Kubernetes ended."""

    disrupted_at: float | None = None
    """Unix seconds when Kubernetes last began to evict or preempt one of its pods."""

    prevented: bool = False
    """Whether `blocked` is what the job asks for itself: a ConfigMap that is not there, a volume that its nodes can't
    have, a scheduler that does not answer."""

    unmade: bool = False
    """Whether `blocked` is why pods can't be made at all, such as a ResourceQuota."""

    refused: bool = False
    """Whether `blocked` is what a user corrects: an image that can't be pulled, a ConfigMap that is not there."""

    cold: bool = False
    """Whether `blocked` is that a server does not answer well the requests that warm it up."""

    earlier: bool = False
    """Whether a child of that number is there that is an earlier ProfiledJob's of this name, which is gone."""

    foreign_pod: str | None = None
    """A living pod with the Revision's labels that is none of its child's: only who made it can end it."""

    ending: EndingPod | None = None
    """Of the pods that are being ended, that which is to be gone first."""

    started_at: float | None = None
    """Unix seconds when Kubernetes last began to run it. None while it never has, or is suspended."""

    finishing: bool = False
    """Whether how it ends is certain by its pods, or known to Kubernetes; the child itself tells a moment later."""

    @property
    def gone(self) -> bool:
        """Whether nothing of it runs any more, and nothing will without the operator."""
        return self.active == 0 and not (self.exists and not (self.adopted and self.held and self.suspended))

    @property
    def stopped_by_user(self) -> bool:
        """Whether its user has suspended what he has made, and so resumes it himself."""
        return self.adopted and self.suspended and not self.held and self.queue is None

    @property
    def holding(self) -> int:
        """Pods that hold chips."""
        return self.running if self.on_nodes is None else self.on_nodes

    @property
    def awaits_others(self) -> bool:
        """Whether its scaled pods are made later, once others have ended that run, such as those that fetch data."""
        return self.exists and not self.suspended and 0 < self.others == self.active and self.blocked is None

    def all_running(self, replicas: int) -> bool:
        """Whether the child is there to stay, and its pods run: so many, where some may have run to their end."""
        return self.exists and not self.deleting and 0 < self.running >= replicas - self.completed

    def lacking(self, replicas: int) -> int:
        """How many pods are still to be made of so many, where the child is there to run."""
        if not self.exists or self.suspended or self.deleting or self.finishing or self.succeeded or self.failed:
            return 0
        return max(replicas - (self.active - self.others) - self.completed, 0)

    def failed_since(self, at: float) -> bool:
        """Whether its program has failed since, Unix seconds. It may have been started again."""
        return self.failed or (self.crash is not None and self.crash.at > at)

    @property
    def why_not_running(self) -> str | None:
        """Why it does not run, as far as its pods say. Another placement helps against `blocked` alone."""
        crash = None if self.crash is None else str(self.crash)
        return self.blocked or crash or self.pod_fault or self.unready


class VariantRefusal(NamedTuple):
    """Why the API server would not take a child with a variant of spec.placement.variants."""

    vendor: str
    """As placement.variants names it."""
    message: str
    """Its words, with the field of the variant."""


@value_object
class ChildRefusal:
    """Why the API server does not take a Revision's child."""

    revision: int
    """Its number."""

    generation: int
    """Of the spec that the child was built from."""

    reason: Reason
    """As Placed shows it."""
    message: str
    """The API server's words."""

    at: float
    """Seconds on the executor's clock."""
