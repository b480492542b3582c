"""`python -m tools.screenshots [--minutes M]`: take every picture, of the cluster that `make demo` has left."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, sync_playwright

from demo.stage import SYSTEM
from demo.stories import STORIES
from devcluster import cluster
from devcluster.spec import DEMO
from tools.dashboards.drawing.answered import answered_boards
from tools.dashboards.drawing.page import page
from tools.screenshots import FOLDER

CHROMIUM: Final = "/usr/bin/chromium"
WIDTH: Final = 1600
BOARD_WIDTH: Final = 1632  # with its margins
_ADDRESS: Final = re.compile(r"http://127\.0\.0\.1:\d+/")
# Of the dashboard Job.
_SHOWN: Final = STORIES[0]


@contextmanager
def served(kubeconfig: Path) -> Iterator[str]:
    """The address of `rightpool ui`, as a user starts it."""
    command = [sys.executable, "-m", "rightpool.cli.main", "ui", "--port", "0"]
    environment = os.environ | {"KUBECONFIG": str(kubeconfig)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            found = _ADDRESS.search(server.stdout.readline())
            if found is None:
                raise RuntimeError("`rightpool ui` did not say where it is")
            yield found[0]
        finally:
            server.send_signal(signal.SIGINT)


def take(browser: Browser, address: str, name: str, *, dark: bool = False, width: int = WIDTH) -> None:
    """The whole page as FOLDER/NAME.png. What the page's script says is wrong is an error."""
    colours: Literal["dark", "light"] = "dark" if dark else "light"
    with browser.new_context(viewport={"width": width, "height": 900}, color_scheme=colours) as context:
        shown = context.new_page()
        wrong: list[str] = []
        shown.on("pageerror", lambda error: wrong.append(str(error)))
        answer = shown.goto(address)
        if wrong or (answer is not None and not answer.ok):
            raise RuntimeError(f"{address}: {answer and answer.status} {wrong}")
        shown.screenshot(path=FOLDER / f"{name}.png", full_page=True)
    print(f"wrote {FOLDER / name}.png", flush=True)


def main() -> int:
    """Returns 1 where there is no cluster of the demo, or no Chromium."""
    parser = argparse.ArgumentParser(prog="python -m tools.screenshots", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0, help="that dashboards show; default: 15")
    since = time.time() - 60.0 * parser.parse_args().minutes
    running = cluster.running(DEMO)
    for needed, remedy in ((running.kubeconfig, "make demo"), (Path(CHROMIUM), "apt-get install chromium")):
        if not needed.exists():
            print(f"there is no {needed}: {remedy}", file=sys.stderr)
            return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    chosen = {"operator": SYSTEM, "namespace": _SHOWN.namespace, "profiledjob": _SHOWN.name}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        # Chromium's own sandbox needs rights that root in a container has not; the pages are ours.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        with served(running.kubeconfig) as address:
            take(browser, address, "fleet")
            take(browser, address, "fleet-dark", dark=True)
            for story in STORIES:
                take(browser, f"{address}jobs/{story.namespace}/{story.name}", f"job-{story.name}")
        for name, board in answered_boards(running.prometheus_url, since, chosen):
            path = Path(folder) / f"{name}.html"
            path.write_text(page(board), encoding="utf-8")
            take(browser, path.as_uri(), f"dashboard-{name}", width=BOARD_WIDTH)
        browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
