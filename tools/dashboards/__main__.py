"""`python -m tools.dashboards [--check]`: write the dashboards of the chart, or list those that are out of date."""

import sys

from tools.dashboards import files


def main() -> int:
    """Returns 1 if --check finds a file that is out of date."""
    if sys.argv[1:] == ["--check"]:
        for name in files.stale():
            print(f"{name} is out of date: python -m tools.dashboards", file=sys.stderr)
        return 1 if files.stale() else 0
    for name in files.write():
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
