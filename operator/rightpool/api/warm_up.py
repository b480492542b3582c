"""spec.workload.server.warmUp: requests that a new replica gets before any other."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from rightpool.api.choices import WarmUpMethod
from rightpool.api.model import ApiModel
from rightpool.api.rules import Rule, validations

_MOST: Final = 10_000
_NAME: Final = validations(
    Rule(
        "self.matches(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
        "must be the name of a ConfigMap: begin with a letter or digit, and use lower-case letters, digits, - and .",
    )
)
_KEY: Final = validations(
    Rule("self.matches(r'^[-._a-zA-Z0-9]+$')", "must be a key of a ConfigMap: use letters, digits, '-', '_' and '.'")
)


class ConfigMapKey(ApiModel):
    """One key of a ConfigMap."""

    name: Annotated[str, Field(max_length=253, json_schema_extra=_NAME)]
    """Its name, in the ProfiledJob's namespace."""

    key: Annotated[str, Field(max_length=253, json_schema_extra=_KEY)]
    """Of `data` or `binaryData`."""


class BodyFrom(ApiModel):
    """Where a body comes from."""

    config_map_key_ref: ConfigMapKey
    """A key of a ConfigMap. An edit of the ConfigMap makes no Revision: new replicas get it."""


class WarmUp(ApiModel):
    """Requests that a new replica gets before any other, one after the other. It is ready once it has answered so many
    of them well, or the last twenty in about the same time."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                "!has(self.bodyFrom) || self.method != 'GET'",
                "must not be set for GET, which sends no body: set method POST, or remove it",
                field=".bodyFrom",
            )
        )
    )

    requests: int = Field(default=200, ge=1, le=_MOST)
    """As many answers, at most."""

    method: WarmUpMethod = WarmUpMethod.POST
    """How it is asked."""

    path: Annotated[
        str,
        Field(
            max_length=512,
            json_schema_extra=validations(
                Rule(
                    "self.matches(r'^/[!-~]*$')",
                    "must begin with a slash, and have no spaces: write /v2/models/m/infer",
                )
            ),
        ),
    ]
    """What is asked for at workload.server.port, with the query."""

    content_type: str = Field(
        default="application/json",
        max_length=128,
        json_schema_extra=validations(
            Rule(
                """self.matches(r'^[-+.a-zA-Z0-9]+/[-+.a-zA-Z0-9]+(; ?[-a-zA-Z0-9]+="?[-+.a-zA-Z0-9]+"?)*$')""",
                "must be a media type: write application/octet-stream",
            )
        ),
    )
    """What the body is."""

    body_from: BodyFrom | None = None
    """The body. Default: none."""
