"""Documentation that is made from what it describes: `python -m chartdocs` writes it, a test keeps it current."""
