"""Draws dashboards without Grafana: their JSON with a Prometheus' answers, a page for each.

`python -m tools.dashboards.drawing PROMETHEUS FOLDER`. The kinds of panels, options and units that the dashboards use
are drawn as Grafana documents them, and any other is an error. It shows what a panel says and how well it can be read,
not that Grafana loads the file.
"""
