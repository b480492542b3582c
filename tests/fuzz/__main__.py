"""`python -m tests.fuzz [--inputs N] [--seed S] [TARGET…]`: fuzz the input of tenants, N inputs for each target."""

import argparse
import gc
import sys

from tests.fuzz import TARGETS
from tests.fuzz.target import run


def main() -> int:
    """Returns 1 at the first finding, which names its input."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="for each target (default: 1000000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], metavar="TARGET", help=", ".join(TARGETS))
    options = parser.parse_args()
    for name in options.targets or TARGETS:
        gc.collect()
        print(run(TARGETS[name], options.inputs, options.seed), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
