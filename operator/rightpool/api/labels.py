"""Labels, and selection by labels."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rightpool.api.model import ApiModel

LabelValue = Annotated[str, Field(max_length=63)]
Labels = Annotated[dict[str, LabelValue], Field(max_length=32)]


class LabelSelector(ApiModel):
    """Labels that an object must carry."""

    match_labels: Annotated[Labels, Field(min_length=1)]
    """Every one of these labels must be there with this value."""
