"""The page on alerts, from the chart's rules. An alert's runbook_url links to its heading on this page."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from tools.chartdocs.values import CHART

RULES: Final = CHART / "files" / "alerts.yaml"

_HEAD: Final = """# Alerts

The rules of `charts/rightpool/files/alerts.yaml`, which `prometheusRule.enabled` gives to the Prometheus operator. A
Prometheus without it takes the file as it is. With `prometheusRule.runbookUrl` each alert links to its place here.
"""


def rules() -> list[dict[str, Any]]:
    """All alert rules, in the order of the file."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def page() -> str:
    """The whole document, in Markdown."""
    return "\n".join([_HEAD, *(_section(rule) for rule in rules())])


def _section(rule: dict[str, Any]) -> str:
    texts = rule["annotations"]
    since = f", after {rule['for']}" if "for" in rule else ", at once"
    return f"""## {rule["alert"]}

**{texts["summary"]}** Severity {rule["labels"]["severity"]}{since}.

```promql
{_folded(rule["expr"])}
```

{texts["runbook"]}
"""


def _folded(expression: str) -> str:
    """A long expression on several lines, broken before its operators."""
    return re.sub(r" (?=(?:unless|and|or|/) )", "\n", expression.strip())
