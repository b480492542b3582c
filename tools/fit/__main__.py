"""Fit the chip model: `make fit`, or `python -m tools.fit [--data DIR] [--check]`.

DIR holds files in the format of published throughput (cross_accelerator.csv). The same data give the same file, bit for
bit; --check fails where the file in the tree is another one.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from dataclasses import fields
from pathlib import Path

import jax

from rightpool.prediction.chip_data import write
from rightpool.prediction.fit import fitted
from rightpool.prediction.published import Evidence, SourcedComparison, learned
from rightpool.prediction.scales import Scales
from tools.fit.throughput import FILE, published

TARGET = Path(__file__).parents[2] / "operator/rightpool/prediction/data/chips.json"

# Of no consequence: evidence has unknowns, and those have scales.
START = Scales(*[0.1] * len(fields(Scales)))


def made(directory: Path) -> str:
    """The text of the data file."""
    read = published(directory)
    rows = [SourcedComparison(work.source, work.comparison) for work in read.works]
    scales = fitted(Evidence.of(rows, START))
    path = directory / FILE
    sources = sorted({row.source for row in rows})
    provenance = {
        "made": "make fit (tools/fit): scales by marginal likelihood, then the exact posterior",
        "file": FILE,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "sources": {name: sum(1 for row in rows if row.source == name) for name in sources},
        "left out": dict(sorted(read.unknown.items())),
    }
    return write(learned(rows, scales), provenance)


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="default: $RIGHTPOOL_SHARED/data/throughput")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the file would change")
    given = parser.parse_args()
    directory = given.data or Path(os.environ["RIGHTPOOL_SHARED"]) / "data/throughput"
    jax.config.update("jax_enable_x64", True)
    text = made(directory)
    if given.check:
        same = TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text
        print("the same" if same else f"{TARGET} would change: run `make fit`")
        return 0 if same else 1
    TARGET.write_text(text, encoding="utf-8")
    print(f"{TARGET}: {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
