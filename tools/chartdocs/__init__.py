"""Generated documentation: `python -m tools.chartdocs` writes it, and a test compares it."""
