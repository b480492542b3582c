"""What can be changed of an object that its user has, while it is suspended: by its kind, as the kind's own controller
allows."""

from typing import NamedTuple


class Abilities(NamedTuple):
    """What a kind lets change in place. A Revision that is an object of its own can be made with anything."""

    kind: str
    """What Kubernetes calls it, such as JobSet."""

    resize: bool
    """Whether it may get another number of pods, or of chips in each."""

    affinity: bool
    """Whether it may get a node affinity. Without it pods are kept to nodes by nodeSelector and tolerations alone."""

    anew: bool = False
    """Whether this very object may be deleted and made anew with another size, where its user lets that be done."""

    by_group: bool = False
    """Whether its controller starts its groups anew one after the other where it is changed while it runs."""

    unable: str = ""
    """Why nothing of this very object can be changed, with the remedy; empty where something can."""
