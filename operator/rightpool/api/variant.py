"""What differs where a ProfiledJob runs on another vendor's chips: spec.placement.variants."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import Field

from rightpool.api.model import ApiModel
from rightpool.api.template import TemplateOverlay


class ChipVendor(StrEnum):
    """Who makes chips: the names of the vendors that the hardware room knows."""

    GOOGLE = "Google"
    NVIDIA = "NVIDIA"
    AMD = "AMD"
    AWS = "AWS"
    INTEL = "Intel"
    CPU = "CPU"


MAX_VARIANTS: Final = len(ChipVendor)


class Variant(ApiModel):
    """What differs on the chips of one vendor."""

    vendor: ChipVendor
    """Who makes the chips. CPU: cores that stand for chips, for development."""

    template: TemplateOverlay = Field(default_factory=dict)
    """What differs in the template of the pods that get chips, laid over it as a strategic merge patch is: containers,
    init containers, variables, volumes and their mounts are merged by name or path, other lists are replaced.
    `$patch: delete` removes an entry of a list, `$patch: replace` keeps nothing of the object that it stands in, and
    null removes a field (of what `kubectl apply` sends, only with --server-side). Empty: the template runs on these
    chips as it is."""
