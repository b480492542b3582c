"""Names of jobs as users write them."""

from typing import Final

from rightpool.cli.connection import CliError
from rightpool.contract import GROUP, VERSION
from rightpool.planning.job import JobKey

_KINDS: Final = frozenset({"pj", "profiledjob", "profiledjobs"})


def job_key(text: str, namespace: str) -> JobKey:
    """NAME, NAMESPACE/NAME, or as kubectl names it: pj/NAME, profiledjob.rightpool.dev/NAME. Raises CliError."""
    first, _, name = text.rpartition("/")
    if not name:
        raise CliError(f"{text!r} is not the name of a ProfiledJob: write NAME or NAMESPACE/NAME")
    kind = first.lower().removesuffix(f".{GROUP}").removesuffix(f".{VERSION}")
    return JobKey(namespace if not first or kind in _KINDS else first, name)
