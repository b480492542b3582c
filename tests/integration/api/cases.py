"""All cases of rules."""

from __future__ import annotations

from typing import Final

from .adoption_cases import ADOPTION_CASES
from .elasticity_cases import ELASTICITY_CASES
from .job_set_cases import JOB_SET_CASES, of_templates
from .leader_worker_set_cases import LEADER_WORKER_SET_CASES
from .policy_cases import POLICY_CASES
from .rule_cases import JOB_CASES, POOL_CASES
from .server_cases import SERVER_CASES, of_servers
from .train_job_cases import TRAIN_JOB_CASES
from .trial_cases import TRIAL_CASES

CASES: Final = (
    *JOB_CASES,
    *JOB_SET_CASES,
    *TRAIN_JOB_CASES,
    *LEADER_WORKER_SET_CASES,
    *SERVER_CASES,
    *of_templates(JOB_CASES),
    *of_servers(JOB_CASES),
    *ADOPTION_CASES,
    *TRIAL_CASES,
    *ELASTICITY_CASES,
    *POOL_CASES,
    *POLICY_CASES,
)
