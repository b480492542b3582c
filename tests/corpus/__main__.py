"""`python -m tests.corpus [NAME…]`: a table of what the agent sees in each program. Exit code 1 below the bar.

`--python PATH` runs the programs with another interpreter, such as one with another version of a framework.
"""

from __future__ import annotations

import argparse
import sys

from tests.corpus.recipe import read
from tests.corpus.run import Outcome, run

STEPS_BAR = 0.95


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs (default: all)")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the interpreter that runs them")
    parser.add_argument("--framework", default="", help="only programs that import it")
    chosen = parser.parse_args()
    recipes = [one for one in read() if not chosen.names or one.name in chosen.names]
    recipes = [one for one in recipes if one.modules.startswith(chosen.framework)]
    outcomes = run(recipes, chosen.python)
    print(f"{'program':26} {'like':52} {'steps':>13} {'samples':>17} {'parameters':>17}  harm")
    for one in outcomes:
        steps, samples = _against(one.steps, one.true_steps), _against(one.samples, one.true_samples)
        parameters = _against(one.parameters, one.true_parameters)
        mark = " " if one.steps_ok and one.samples_ok and one.parameters_ok and not one.harm else "!"
        print(
            f"{mark}{one.recipe.name:25} {one.recipe.like[:52]:52} {steps:>13} {samples:>17} {parameters:>17}  "
            f"{one.harm or '-'}"
        )
    return 0 if judge(outcomes) else 1


def judge(outcomes: list[Outcome]) -> bool:
    """Print the totals; whether they meet the bar."""
    count = len(outcomes)
    steps = sum(one.steps_ok for one in outcomes)
    exact = sum(one.samples is not None and one.samples_ok for one in outcomes)
    absent = sum(one.samples is None for one in outcomes)
    harmed = sum(bool(one.harm) for one in outcomes)
    counted = [one for one in outcomes if one.true_parameters is not None]
    seen, miscounted = sum(one.parameters is not None for one in counted), sum(not one.parameters_ok for one in counted)
    print(
        f"\n{count} programs: steps exact in {steps}, samples exact in {exact} and absent in {absent}, "
        f"wrong in {count - exact - absent}, parameters exact in {seen - miscounted} of {len(counted)} and wrong in "
        f"{miscounted}, harm in {harmed}"
    )
    return count > 0 and steps >= STEPS_BAR * count and exact + absent == count and miscounted + harmed == 0


def _against(found: float | None, true: float | None) -> str:
    return f"{_text(found)} of {_text(true)}"


def _text(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


if __name__ == "__main__":
    raise SystemExit(main())
