"""Names and labels of a Revision's objects."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from rightpool.contract import FIELD_MANAGER, LABEL_JOB, LABEL_POOL, LABEL_REVISION
from rightpool.workloads.template import InvalidTemplate, canonical

NAME_LIMIT: Final = 63
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_QUEUE: Final = "kueue.x-k8s.io/queue-name"
ANNOTATION_HELD: Final = "rightpool.dev/held"  # of a child in a queue that is to be stopped, whatever its queue says

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_HASH_DIGITS: Final = 16


def child_name(job: str, revision: int) -> str:
    """The name of a Revision's child."""
    return f"{job}-r{revision}"


def service_name(child: str) -> str:
    """The name of a Revision's headless Service: the child's own.

    A Service's name must begin with a letter, a Job's need not: for example `7b-finetune` is a valid name of a Job.
    """
    return child if child[:1].isalpha() else f"pj-{child}"


def check_names(job: str, revision: int, replicas: int) -> None:
    """Raise InvalidTemplate if the name of the child, its Service or a pod's host would not be a DNS label."""
    child = child_name(job, revision)
    host = f"{child}-{replicas - 1}"
    if _DNS_LABEL.fullmatch(job) is None:
        raise InvalidTemplate(
            f"the job's name {job!r} can't be part of a host name: use lower-case letters, digits and '-' only"
        )
    longest = max(host, service_name(child), key=len)
    if len(longest) > NAME_LIMIT:
        raise InvalidTemplate(
            f"the job's name is too long: {longest!r} has {len(longest)} characters, at most {NAME_LIMIT} fit"
        )


def selector_labels(job: str, revision: int) -> dict[str, str]:
    """The labels that select the pods of one Revision."""
    return {LABEL_JOB: job, LABEL_REVISION: str(revision)}


def labels(job: str, revision: int, pool: str) -> dict[str, str]:
    """The labels that the operator puts on a Revision's objects. Users can't set them."""
    return {**selector_labels(job, revision), LABEL_POOL: pool}


def object_labels(job: str, revision: int, pool: str) -> dict[str, str]:
    """The labels of objects that the operator creates."""
    return {**labels(job, revision, pool), LABEL_MANAGED_BY: FIELD_MANAGER}


def workload_hash(template: Mapping[str, Any], chip_container: str | None) -> str:
    """A hash that changes when the user changes the workload. Equivalent templates have equal hashes.

    Chips and replicas are not part of it, because the operator sets them.
    """
    text = f"{chip_container or ''}\n{canonical(template)}"
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
