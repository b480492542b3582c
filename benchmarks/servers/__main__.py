"""How far the model of servers is off, and what sizing by it pays on recorded demand.

    PYTHONPATH=operator:. python -m benchmarks.servers [--data DIR] [--throughput DIR] [--model | --moves] [--json FILE]

DIR: traces (azure*.csv, twitter*.csv, trace*.csv, packed or not) and tables of servers; of --throughput MLPerf's table.
Without them, those of the folder that RIGHTPOOL_SHARED names. --model: without dollars on traces. --moves: what
moves do to requests, alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.servers.data import Line, traces
from benchmarks.servers.memory import late_first, promised
from benchmarks.servers.model import calibration, server_from_offline, tails, tokens
from benchmarks.servers.money import money
from benchmarks.servers.moves import moves
from benchmarks.servers.token_money import token_money

DAYS = 2 * 24 * 240


def found(data: Path, table: Path, model: bool) -> Iterator[Line]:
    """All lines for which there are files."""
    demand = traces(data)
    yield from tails(demand)
    series, batches = data / "llm_silicon.csv.gz", data / "argonne_llm_bench.csv.gz"
    if series.exists():
        yield from tokens(series)
    if series.exists() and batches.exists():
        yield from calibration(batches, series)
    if table.exists():
        yield from server_from_offline(table)
    llms = data / "aic_vllm.csv"
    if llms.exists():
        yield promised(llms)
    yield from late_first(demand)
    for one in demand if llms.exists() and not model else ():
        yield from token_money(one, llms)
    if table.exists():
        for one in demand if not model else ():
            if len(one.counts) >= DAYS:  # a plan needs a day before it
                yield from money(one, table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    shared = os.environ.get("RIGHTPOOL_SHARED")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.servers", description="How servers are sized.")
    parser.add_argument("--data", type=Path, help="directory of traces and tables of servers")
    parser.add_argument("--throughput", type=Path, help="directory of mlperf_inference.csv")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--model", action="store_true", help="what the model is off by alone")
    part.add_argument("--moves", action="store_true", help="what moves do to requests alone")
    parser.add_argument("--json", type=Path, help="write the lines there, too")
    given = parser.parse_args(arguments)
    if (given.data is None or given.throughput is None) and shared is None:
        print("skipped: name --data and --throughput, or set RIGHTPOOL_SHARED to the folder of recorded measurements")
        return 0
    recorded = Path(shared or "") / "data"
    data, throughput = given.data or recorded / "serving", given.throughput or recorded / "throughput"
    lines = []
    table = throughput / "mlperf_inference.csv"
    for line in moves(traces(data)) if given.moves else found(data, table, given.model):
        print(line, flush=True)
        lines.append(line)
    judged = [line for line in lines if line.ok is not None]
    print(f"{sum(bool(line.ok) for line in judged)} of {len(judged)} bars reached")
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
