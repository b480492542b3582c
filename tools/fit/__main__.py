"""Fit the models of chips and of sizes: `make fit`, or `python -m tools.fit [--data DIR] [--check]`.

DIR holds files in the format of published throughput (cross_accelerator.csv, lambda_train.csv, …). The same data give
the same files, bit for bit; --check fails where those in the tree are others.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections import Counter
from dataclasses import fields
from pathlib import Path

import jax

from rightpool.hardware.catalog import load_catalog
from rightpool.prediction.chip_data import write
from rightpool.prediction.scales import Scales
from tools.fit.evidence import Evidence, SourcedComparison, learned
from tools.fit.scales import fitted
from tools.fit.scaling import FILES, scalings
from tools.fit.sizes import fitted_sizes
from tools.fit.throughput import FILE, published

DATA = Path(__file__).parents[2] / "operator/rightpool/prediction/data"

# Of no consequence: evidence has unknowns, and those have scales.
START = Scales(*[0.1] * len(fields(Scales)))


def made(directory: Path) -> dict[str, str]:
    """The texts of the data files, by name."""
    return {"chips.json": _chips(directory), "sizes.json": _sizes(directory)}


def _chips(directory: Path) -> str:
    read = published(directory)
    rows = [SourcedComparison(work.source, work.comparison) for work in read.works]
    scales = fitted(Evidence.of(rows, START))
    sources = sorted({row.source for row in rows})
    provenance = {
        "made": "make fit (tools/fit): scales by marginal likelihood, then the exact posterior",
        "file": FILE,
        "sha256": _digest(directory / FILE),
        "sources": {name: sum(1 for row in rows if row.source == name) for name in sources},
        "left out": dict(sorted(read.unknown.items())),
    }
    return write(learned(rows, scales), provenance)


def _sizes(directory: Path) -> str:
    unknown: Counter[str] = Counter()
    found = scalings(directory, load_catalog(), unknown)
    counts = Counter(scaling.source for scaling in found)
    provenance = {
        "made": "make fit (tools/fit): by the likelihood of one size predicted from another, and from two",
        "sha256": {name: _digest(directory / name) for name in FILES if (directory / name).is_file()},
        "sources": dict(sorted(counts.items())),
        "left out": dict(sorted(unknown.items())),
    }
    return fitted_sizes(found).write(provenance)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="default: $RIGHTPOOL_SHARED/data/throughput")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the file would change")
    given = parser.parse_args()
    directory = given.data or Path(os.environ["RIGHTPOOL_SHARED"]) / "data/throughput"
    jax.config.update("jax_enable_x64", True)
    texts = made(directory)
    if given.check:
        others = [name for name, text in texts.items() if (DATA / name).read_text(encoding="utf-8") != text]
        print(f"{', '.join(others)} would change: run `make fit`" if others else "the same")
        return 1 if others else 0
    for name, text in texts.items():
        (DATA / name).write_text(text, encoding="utf-8")
        print(f"{DATA / name}: {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
