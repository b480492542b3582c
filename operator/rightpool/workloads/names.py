"""Names and labels of a Revision's objects."""

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from rightpool.api.program_edit import MAX_IMAGE
from rightpool.api.wording import both_ends
from rightpool.contract import FIELD_MANAGER, LABEL_JOB, LABEL_POOL, LABEL_REVISION
from rightpool.workloads.pod_set import PodSet, scaled_of
from rightpool.workloads.template import InvalidTemplate, canonical

NAME_LIMIT: Final = 63
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_QUEUE: Final = "kueue.x-k8s.io/queue-name"
LABEL_OWNER: Final = "rightpool.dev/member-of"  # of pods whose child's uid no label has: its ProfiledJob and Revision
ANNOTATION_HELD: Final = "rightpool.dev/held"  # of a child that the operator has stopped, or its queue for it
ANNOTATION_ORIGINAL: Final = "rightpool.dev/original"  # of an object that was changed in place: what it was before

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_HASH_DIGITS: Final = 16
_DIGEST_DIGITS: Final = 7


def child_name(job: str, revision: int) -> str:
    """The name of a Revision's child."""
    return f"{job}-r{revision}"


def service_name(child: str) -> str:
    """The name of a Revision's headless Service: the child's own.

    A Service's name must begin with a letter, a Job's need not: for example `7b-finetune` is a valid name of a Job.
    """
    return child if child[:1].isalpha() else f"pj-{child}"


def check_names(job: str, *names: str) -> None:
    """Raise InvalidTemplate if one of these names of a job's child, its Service or a pod's host would be no DNS
    label."""
    if _DNS_LABEL.fullmatch(job) is None:
        raise InvalidTemplate(
            f"the job's name {job!r} can't be part of a host name: use lower-case letters, digits and '-' only"
        )
    longest = max(names, key=len)
    if len(longest) > NAME_LIMIT:
        raise InvalidTemplate(
            f"the job's name is too long: {longest!r} has {len(longest)} characters, at most {NAME_LIMIT} fit"
        )


def short_image(image: str) -> str:
    """An image as messages name it: trainer:1.4 of registry.example.com/team/trainer:1.4, a digest by its beginning."""
    name, _, digest = image.rpartition("/")[2].partition("@")
    short = f"{name}@{digest.rpartition(':')[2][:_DIGEST_DIGITS]}" if digest else name
    return both_ends(short, MAX_IMAGE)


def selector_labels(job: str, revision: int) -> dict[str, str]:
    """The labels that select the pods of one Revision."""
    return {LABEL_JOB: job, LABEL_REVISION: str(revision)}


def labels(job: str, revision: int, pool: str) -> dict[str, str]:
    """The labels that the operator puts on a Revision's objects. Users can't set them."""
    return {**selector_labels(job, revision), LABEL_POOL: pool}


def object_labels(job: str, revision: int, pool: str) -> dict[str, str]:
    """The labels of objects that the operator creates."""
    return {**labels(job, revision, pool), LABEL_MANAGED_BY: FIELD_MANAGER}


def workload_hash(pod_sets: Sequence[PodSet]) -> str:
    """A hash that changes when the user changes the workload. Equivalent templates have equal hashes.

    Chips and replicas of the scaled set are not part of it, because the operator sets them.
    """
    scaled = scaled_of(pod_sets)
    text = f"{scaled.chip_container or ''}\n{canonical(scaled.template)}"
    if scaled.settings:
        text += f"\n{scaled.settings}"
    for other in pod_sets:
        if other is not scaled:
            text += f"\n{other.name} {other.pods} {canonical(other.template)}"
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
