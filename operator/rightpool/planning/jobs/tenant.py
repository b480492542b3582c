"""The tenant that a job is of: pools tell no names of namespaces."""

from functools import lru_cache
from hashlib import sha256

from rightpool.planning.jobs.job import Job


def tenant_of(job: Job) -> str:
    """Its hash."""
    return hash_of(job.key.namespace)


@lru_cache(maxsize=4096)
def hash_of(text: str) -> str:
    """Short enough for a status."""
    return sha256(text.encode()).hexdigest()[:16]
