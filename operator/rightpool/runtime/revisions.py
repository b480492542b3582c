"""What the cluster shows of a job's Revisions, out of their Jobs and Pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from rightpool.planning.revision import RevisionState
from rightpool.runtime.facts import ChildFacts, PodFacts

MAX_REASON = 500


def revision_states(
    owner: str, children: Iterable[ChildFacts], pods: Iterable[PodFacts]
) -> Mapping[int, RevisionState]:
    """owner: uid of the ProfiledJob.

    What an earlier ProfiledJob of the same name has left is not a Revision of this one, and must end first. Its pods
    count as active: whoever they belong to, they may be writing to the checkpoint.
    """
    jobs: dict[int, ChildFacts] = {}
    earlier: set[int] = set()
    for child in children:
        if child.owner == owner:
            jobs[child.revision] = child
        elif child.named:
            earlier.add(child.revision)
    members: dict[int, list[PodFacts]] = defaultdict(list)
    for pod in pods:
        if pod.revision is None:
            continue
        members[pod.revision].append(pod)
    return {
        number: _state(number, jobs.get(number), members.get(number, []), number in earlier)
        for number in {*jobs, *earlier, *members}
    }


def _state(number: int, child: ChildFacts | None, pods: list[PodFacts], earlier: bool) -> RevisionState:
    active = [pod for pod in pods if not pod.done]
    stranger = min((pod.name for pod in active if not pod.named), default=None)
    if child is None:
        return RevisionState(revision=number, exists=False, active=len(active), earlier=earlier, stranger=stranger)
    own = [pod for pod in active if pod.owner == child.uid]
    running = sum(pod.ready and not pod.deleting for pod in own)
    blocked = next((pod.blocked for pod in own if pod.blocked), None)
    failures = [pod.failure for pod in pods if pod.failure and pod.owner == child.uid]
    failure = child.failure
    if child.failed and failures:
        failure = f"{failures[-1]}; {failure}" if failure else failures[-1]
    return RevisionState(
        revision=number,
        exists=True,
        deleting=child.deleting,
        suspended=child.suspended,
        active=len(active),
        running=running,
        succeeded=child.succeeded,
        failed=child.failed,
        blocked=_cut(blocked),
        failure=_cut(failure),
        earlier=earlier,
        stranger=stranger,
        started_at=child.started_at,
        finishing=child.ending or (not own and any(pod.succeeded and pod.owner == child.uid for pod in pods)),
    )


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= MAX_REASON else text[: MAX_REASON - 1] + "…"
