"""Names of jobs as users write them."""

from typing import Final

from rightpool.contract import GROUP, VERSION
from rightpool.planning.job import JobKey

_KINDS: Final = frozenset({"pj", "profiledjob", "profiledjobs"})


def job_key(text: str, namespace: str) -> JobKey:
    """NAME, NAMESPACE/NAME, or as kubectl names it: pj/NAME, profiledjob.rightpool.dev/NAME."""
    first, _, name = text.rpartition("/")
    kind = first.lower().removesuffix(f".{GROUP}").removesuffix(f".{VERSION}")
    return JobKey(namespace if not first or kind in _KINDS else first, name)
