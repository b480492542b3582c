"""Trials: a short run of a job's or server's program elsewhere, so that a decision rests on what was measured there."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rightpool.api.choices import TrialVolumes
from rightpool.api.model import ApiModel
from rightpool.api.quantities import Duration, Money, a_second_or_more


class Trial(ApiModel):
    """Lets the job's program be run for some minutes on free chips of another pool, beside the job, which runs on. A
    server's is one replica, which gets the requests of workload.server.warmUp and none of a client."""

    duration: Annotated[Duration, a_second_or_more("3m", longest="1h")] = Field(default="3m", validate_default=True)
    """Most time that a trial measures, from its first step on, or a server's first answer, 1h at most."""

    volumes: TrialVolumes = TrialVolumes.READ_ONLY
    """What a trial may do to volumes that outlive a pod. ReadOnly: it reads them. Scratch: it has empty ones in their
    places. What a program writes over the network only the program can keep apart: RIGHTPOOL_TRIAL is 1 in a trial."""

    max_cost: Money = Field(default="2", validate_default=True)
    """Most dollars for the chips of all trials of the job. One that would cost more does not begin, or ends."""
