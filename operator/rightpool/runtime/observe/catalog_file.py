"""The catalog that the operator works with: the one that ships, with the chart's values over it."""

from __future__ import annotations

import logging
from pathlib import Path

from rightpool.hardware.catalog import Catalog, load_catalog
from rightpool.hardware.chart_values import with_values, without_values

logger = logging.getLogger(__name__)


def read_catalog(file: Path | None) -> Catalog:
    """With the values that the file holds, in JSON. Whatever it holds, there is a catalog; what can't be used is logged
    and in its problems. None: the catalog that ships."""
    catalog = load_catalog()
    if file is None:
        return catalog
    try:
        catalog = with_values(catalog, file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        catalog = without_values(catalog, str(error))
    for problem in catalog.problems:
        logger.warning("%s", problem.message)
    return catalog
