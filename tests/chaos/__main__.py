"""`python -m tests.chaos`: a fault campaign on a separate cluster. Exits 0 only without a violation.

SIGINT and SIGTERM stop the injection of faults. The campaign still repairs what is broken and waits for the fleet to
settle.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from pathlib import Path

from devcluster import cluster as clusters
from devcluster.spec import CHAOS, DevclusterError
from tests.chaos.campaign import Campaign, Report
from tests.chaos.environment import connect


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--faults", type=int, default=200, help="how many to inject (default 200)")
    parser.add_argument("--seconds", type=float, help="stop injecting after this many seconds")
    parser.add_argument("--seed", type=int, help="seed of the random draws (default: a new one, printed)")
    parser.add_argument("--jobs", type=int, default=60, help="how many jobs (default 60)")
    parser.add_argument("--rate", type=float, default=2.0, help="faults a second (default 2)")
    parser.add_argument("--logs", type=Path, help="folder for the operators' logs (default: a temporary one)")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    try:
        campaign = Campaign(connect(), seed, jobs=arguments.jobs, folder=arguments.logs, say=_say)
        print(f"the operators' logs are in {campaign.folder}", flush=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: campaign.stop())
        report = campaign.run(arguments.faults, rate=arguments.rate, seconds=arguments.seconds)
    except DevclusterError as error:
        print(error, file=sys.stderr)
        return 2
    finally:
        if not arguments.keep:
            clusters.down(CHAOS)
    _print(report)
    return 1 if report.violations else 0


def _say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def _print(report: Report) -> None:
    print(report.table())
    migrations = ", ".join(f"{count} {outcome}" for outcome, count in sorted(report.migrations.items()))
    settled = "never" if report.settled_after is None else f"{report.settled_after:.0f} s after the last fault"
    print(f"\nseed {report.seed}, {report.jobs} jobs, {report.total} faults in {report.seconds:.0f} s")
    able = f"an operator led undisturbed for {report.able_seconds:.0f} s"
    print(f"{report.events} events of the API server checked, {report.replaced} operators replaced; {able}")
    print(f"outcomes in the remaining ledgers: {migrations or 'none'}; settled {settled}")
    print(f"violations: {len(report.violations)}")
    for violation in report.violations:
        print(f"FAILED {violation}")


if __name__ == "__main__":
    sys.exit(main())
