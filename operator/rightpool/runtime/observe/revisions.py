"""The observed state of a job's Revisions, derived from their children and pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from rightpool.api.altered import altered
from rightpool.api.revision import Revision
from rightpool.planning.jobs.revision_state import Crash, EndingPod, PodFailure, RevisionState
from rightpool.runtime.observe.facts import ChildFacts, PodFacts

MAX_REASON = 700
# A scheduler that runs looks at a pod within seconds, and says what it finds.
LONGEST_UNSEEN_SECONDS = 60.0


def revision_states(
    owner: str,
    children: Iterable[ChildFacts],
    pods: Iterable[PodFacts],
    disruptions: Mapping[str, float] = MappingProxyType({}),
) -> Mapping[int, RevisionState]:
    """The state of each Revision by its number. `owner` is the uid of the ProfiledJob. `disruptions`: when Kubernetes
    last began to end a pod unasked, by the uid of its child.

    Children of an earlier ProfiledJob of the same name are no Revisions of this one, and must end first. Their pods
    count as active, because they may still write to the checkpoint.
    """
    own: dict[int, ChildFacts] = {}
    earlier: set[int] = set()
    for child in children:
        if child.owner == owner:
            own[child.revision] = child
        elif child.named:
            earlier.add(child.revision)
    pods_by_revision: dict[int, list[PodFacts]] = defaultdict(list)
    for pod in pods:
        if pod.revision is None:
            continue
        pods_by_revision[pod.revision].append(pod)
    return {
        number: _state(number, own.get(number), pods_by_revision.get(number, []), number in earlier, disruptions)
        for number in {*own, *earlier, *pods_by_revision}
    }


def _state(
    number: int, child: ChildFacts | None, pods: list[PodFacts], earlier: bool, disruptions: Mapping[str, float]
) -> RevisionState:
    active = [pod for pod in pods if not pod.done]
    own = [pod for pod in active if (pod.owner if child is None else pod.owner == child.members)]
    scaled = [pod for pod in own if (pod.chips if child is None else pod.role == child.state.role)]
    paid = [pod for pod in scaled if pod.node is not None]
    moments = [pod.bound_at for pod in paid if pod.bound_at is not None]
    bound_at = sum(moments) / len(moments) if moments and len(moments) == len(paid) else None
    foreign = min((pod.name for pod in active if not pod.owner), default=None)
    overdue = [EndingPod(pod.name, pod.node, pod.due) for pod in active if pod.due is not None]
    ending = min(overdue, key=lambda pod: (pod.due, pod.name), default=None)
    if child is None:
        return RevisionState(
            revision=number,
            exists=False,
            active=len(active),
            on_nodes=len(paid),
            bound_at=bound_at,
            earlier=earlier,
            foreign_pod=foreign,
            ending=ending,
        )
    # Who suspends or ends a child ends its pods, and so does a child that fails or succeeds. Its queue does it unasked.
    preempted = child.queued and not child.held
    ends = child.ended or child.state.ending or (child.state.suspended and not preempted)
    evicted = 0 if ends else sum((pod.deleting or pod.disrupted) and pod.node is not None for pod in scaled)
    running = sum(pod.ready and not pod.deleting for pod in scaled)
    blocked = next((pod for pod in scaled if pod.blocked), None)
    unscheduled = (pod.unschedulable_since for pod in scaled if not pod.deleting)
    nodes: dict[str, int] = {}
    for pod in active:
        if pod.node is not None and (pod.owner != child.members or pod.role == child.state.role):
            nodes[pod.node] = nodes.get(pod.node, 0) + 1
    failures = [pod.failure for pod in pods if pod.failure and pod.owner == child.members]
    failure, counted = child.state.failure, child.state.failures
    if child.state.failed and failures:
        failure = f"{failures[-1]}; {failure}" if failure else failures[-1]
    return RevisionState(
        revision=number,
        exists=True,
        deleting=child.deleting,
        suspended=child.state.suspended,
        held=child.held,
        adopted=child.adopted is not None,
        edited=child.adopted is not None and child.adopted.edited,
        undone=None if child.adopted is None else child.adopted.undone,
        queue=None if child.adopted is None else child.adopted.queue,
        active=len(active),
        others=len(own) - len(scaled),
        running=running,
        pods=child.state.pods,
        completed=sum(pod.succeeded and _is_scaled(pod, child) for pod in pods),
        on_nodes=len(paid),
        bound_at=bound_at,
        evicted=evicted,
        succeeded=child.state.succeeded,
        failed=child.state.failed,
        blocked=None if blocked is None else _cut(blocked.blocked),
        refused=blocked is not None and blocked.refused,
        cold=blocked is not None and blocked.cold,
        prevented=blocked is not None and blocked.own_block,
        crash=None if child.ended else _crash(child, pods),
        failures_allowed=counted.allowed if counted is not None and counted.exceeded else None,
        pod_failures=_pod_failures(child, pods),
        disrupted_at=disruptions.get(child.members),
        unschedulable_since=min((since for since in unscheduled if since is not None), default=None),
        unseen=min((pod.unseen for pod in scaled if pod.unseen is not None), default=None),
        nodes=nodes,
        failure=_cut(failure),
        pod_fault=_cut(next((pod.fault for pod in reversed(pods) if pod.fault and pod.owner == child.members), None)),
        unready=_cut(next((text for pod in own if (text := _not_ready(pod, child)) and not pod.deleting), None)),
        earlier=earlier,
        foreign_pod=foreign,
        ending=ending,
        started_at=child.state.started_at,
        finishing=child.state.ending or (not own and any(pod.succeeded and pod.owner == child.members for pod in pods)),
    )


def _crash(child: ChildFacts, pods: list[PodFacts]) -> Crash | None:
    """How the program failed last. The child's own count may be a moment late, and has no restarts in place."""
    own = [pod for pod in pods if pod.owner == child.members and pod.end is not None]
    last = max((pod.end for pod in own if pod.end is not None), key=lambda end: end.at, default=None)
    if last is None:
        return None
    failed, failures = sum(pod.done for pod in own), child.state.failures
    counted = failed if failures is None else max(failures.counted, failed)
    return Crash(
        count=counted + sum(pod.restarts for pod in own if not pod.done),
        allowed=None if failures is None else failures.allowed,
        container=last.container,
        exit_code=last.exit_code,
        reason=last.reason,
        at=last.at,
        output=last.output,
        limit="" if failures is None else failures.limit,
    )


def _is_scaled(pod: PodFacts, child: ChildFacts) -> bool:
    return pod.owner == child.members and pod.role == child.state.role


def _not_ready(pod: PodFacts, child: ChildFacts) -> str | None:
    """Why a pod is not ready. What blocks a pod without chips is told here: no other placement helps against it."""
    return pod.unready or (None if _is_scaled(pod, child) else pod.blocked)


def with_unseen(revisions: Mapping[int, RevisionState], now: float) -> Mapping[int, RevisionState]:
    """Those of which no scheduler has looked at a pod for too long are blocked; the very same object where none is."""
    late = {
        number: altered(
            state,
            prevented=True,
            blocked=(
                f"scheduler {state.unseen.scheduler} has not looked at the pods: see that it runs, or remove "
                "template.spec.schedulerName"
            ),
        )
        for number, state in revisions.items()
        if state.unseen is not None and state.blocked is None and now - state.unseen.since > LONGEST_UNSEEN_SECONDS
    }
    return {**revisions, **late} if late else revisions


def with_unmade(
    revisions: Mapping[int, RevisionState], current: Revision | None, words: str | None
) -> Mapping[int, RevisionState]:
    """The current one that lacks pods is blocked by what keeps them from being made; the very same object where nothing
    does."""
    state = None if current is None or words is None else revisions.get(current.revision)
    if current is None or state is None or state.blocked is not None or not state.lacking(current.placement.replicas):
        return revisions
    return {**revisions, state.revision: altered(state, blocked=_cut(words), prevented=True, unmade=True)}


def _pod_failures(child: ChildFacts, pods: list[PodFacts]) -> tuple[PodFailure, ...]:
    """Of scaled pods: a driver is no peer of theirs. Those that are being deleted do not count: a child that has failed
    ends the others."""
    return tuple(
        PodFailure(pod.bound_at or 0.0, pod.end.at)
        for pod in pods
        if pod.done and pod.end is not None and _is_scaled(pod, child) and not pod.deleting
    )


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= MAX_REASON else text[: MAX_REASON - 1] + "…"
