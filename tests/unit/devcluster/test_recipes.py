"""What images built without Docker share with their Dockerfiles."""

import re

from devcluster.recipes import OPERATOR_ENVIRONMENT, ROOT


def test_the_operator_runs_with_what_its_dockerfile_sets() -> None:
    text = (ROOT / "operator" / "Dockerfile").read_text()
    lines = re.findall(r"^ENV (.+)$", text, re.MULTILINE)
    stated = dict(setting.split("=", 1) for line in lines for setting in line.split())
    assert {name: stated.get(name) for name in OPERATOR_ENVIRONMENT} == OPERATOR_ENVIRONMENT
