"""The page on alerts, from the rules that the chart ships: an alert's runbook_url leads to its heading here."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from chartdocs.values import CHART

RULES: Final = CHART / "files" / "alerts.yaml"

_HEAD: Final = """# Alerts

The rules of `charts/rightpool/files/alerts.yaml`, which `prometheusRule.enabled` gives to the Prometheus operator. A
Prometheus without it takes the file as it is. With `prometheusRule.runbookUrl` each alert links to its place here.
"""


def rules() -> list[dict[str, Any]]:
    """All of them, in the file's order."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def page() -> str:
    """The whole document, in Markdown."""
    return "\n".join([_HEAD, *(_section(rule) for rule in rules())])


def _section(rule: dict[str, Any]) -> str:
    said = rule["annotations"]
    since = f", after {rule['for']}" if "for" in rule else ", at once"
    return f"""## {rule["alert"]}

**{said["summary"]}** Severity {rule["labels"]["severity"]}{since}.

```promql
{_folded(rule["expr"])}
```

{said["runbook"]}
"""


def _folded(expression: str) -> str:
    """A long expression on several lines: broken before what joins two of its parts."""
    return re.sub(r" (?=(?:unless|and|or|/) )", "\n", expression.strip())
