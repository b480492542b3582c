"""`python -m tools.chartdocs [--check]`: write the tables, or list those that are out of date."""

import sys

from tools.chartdocs import documents


def main() -> int:
    """Returns 1 if --check finds a document that is out of date."""
    if sys.argv[1:] == ["--check"]:
        stale = documents.stale()
        for path in stale:
            print(f"{path.relative_to(documents.ROOT)} is out of date: python -m tools.chartdocs", file=sys.stderr)
        return 1 if stale else 0
    for path in documents.write():
        print(f"wrote {path.relative_to(documents.ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
