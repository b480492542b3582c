"""The page in a real Chromium: its script, its keyboard, its updates, and what axe finds.

Skipped where there is no Chromium (Debian package chromium).
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from rightpool.cli.ui.fleet import JOBS_SHOWN
from rightpool.cli.ui.server import Pages, application
from rightpool.cluster.resources import PROFILED_JOBS
from tests.patience import PATIENCE
from tests.unit.cli.cluster import FakeClient, condition, job, running_status
from tests.unit.cli.ui.pages import abandoned, fleet, pages_of, stories

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# Pages are waited for by condition; this only ends a run that hangs.
MILLISECONDS = 1000 * PATIENCE

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium"),
    pytest.mark.filterwarnings("default"),
]


@dataclass
class Shown:
    """A page in a browser, and the cluster behind it."""

    client: FakeClient
    pages: Pages
    page: Page
    address: str
    errors: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        self.page.goto(self.address + path)

    def update(self) -> None:
        """As the page's script does every few seconds; not waited for by time."""
        self.pages.fleet.renew()
        self.page.evaluate("update()")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Chromium's own sandbox needs rights that root in a container has not; the page is ours.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        with playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=MILLISECONDS) as found:
            yield found


@pytest.fixture
def shown(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Shown]:
    """In light or dark, by parameter."""
    client = abandoned(fleet())
    with served(browser, client, pages_of(client), getattr(request, "param", "light")) as found:
        yield found


@contextmanager
def served(browser: Browser, client: FakeClient, pages: Pages, colours: str) -> Iterator[Shown]:
    """A page on a server of its own."""
    server = uvicorn.Server(
        uvicorn.Config(application(pages), port=0, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    with browser.new_context(color_scheme=colours) as context:
        context.set_default_timeout(MILLISECONDS)
        page = context.new_page()
        found = Shown(client, pages, page, f"http://127.0.0.1:{port}")
        page.on("pageerror", lambda error: found.errors.append(str(error)))
        page.on("console", lambda message: found.errors.append(message.text) if message.type == "error" else None)
        page.on("request", lambda asked: found.asked.append(asked.url))
        yield found
    server.should_exit = True
    thread.join(PATIENCE)


@pytest.mark.parametrize("shown", ["light", "dark"], indirect=True)
def test_both_pages_have_no_errors_and_no_findings_and_ask_nobody_else(shown: Shown) -> None:
    compared = "/jobs/vision/resnet50/compare?against=a10g,TPU-v5e"
    pages = ("/", "/jobs/vision/moved", "/jobs/vision/resnet50", compared, "/?q=nothing", "/simulate")
    for path in pages:
        shown.open(path)
        found = Axe().run(shown.page).response["violations"]
        assert [(path, each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
    assert shown.errors == []
    assert all(url.startswith((shown.address, "data:")) for url in shown.asked)


def test_the_demos_stories_have_no_errors_and_no_findings(browser: Browser) -> None:
    """Every job as a real operator has left it: moved, undone, resized, and the one that waited."""
    client, now = stories()
    jobs = [body["metadata"] for body in client.objects[PROFILED_JOBS]]
    with served(browser, client, pages_of(client, now=now), "light") as shown:
        for path in ("/", *(f"/jobs/{about['namespace']}/{about['name']}" for about in jobs)):
            shown.open(path)
            found = Axe().run(shown.page).response["violations"]
            assert [(path, each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
            assert shown.page.query_selector("#quiet") is None, "its operator leads"
        assert shown.page.inner_text("main")
        assert shown.errors == []
        shown.open("/")
        rows = shown.page.eval_on_selector_all("table.jobs tbody tr", "rows => rows.map((row) => row.innerText)")
        assert len(rows) == len(jobs) == 5
        assert all("Running" in row for row in rows)


def test_very_many_rows_are_a_table_whose_columns_hold_their_words(browser: Browser) -> None:
    client = fleet()
    for number in range(JOBS_SHOWN):
        client.add(PROFILED_JOBS, job(f"a-rather-long-name-of-a-job-{number}", status=running_status()))
    with served(browser, client, pages_of(client), "light") as shown:
        shown.open("/?all=1")
        cut = "cells => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.innerText)"
        assert shown.page.eval_on_selector_all("table.jobs tr > *", cut) == []
        lefts = "cells => [...new Set(cells.map((cell) => Math.round(cell.getBoundingClientRect().left)))].length"
        for column in (1, 2, 9):
            one = shown.page.eval_on_selector_all(f"table.jobs tr > :nth-child({column})", lefts)
            assert one == 1, "the cells of a column stand below each other"
        roles = shown.page.get_by_role("row")
        assert roles.count() > JOBS_SHOWN, "a screen reader still finds rows"
        found = Axe().run(shown.page).response["violations"]
        assert [each["id"] for each in found] == []
        updated = shown.page.inner_text("main")
        shown.update()
        assert shown.page.inner_text("main") == updated
        assert shown.errors == []


def test_no_column_is_cut_off_on_a_screen_of_1600(browser: Browser) -> None:
    """With words in every column, the longest that there are."""
    client, now = stories()
    body = client.objects[PROFILED_JOBS][0]
    body["metadata"] |= {"name": "a-rather-long-name-of-a-job-of-somebody", "namespace": "a-long-namespace"}
    place = {"pool": "a-reserved-pool-of-a100s", "chips": 16, "replicas": 2}
    body["status"] |= {
        "conditions": [
            *(each for each in body["status"]["conditions"] if each["type"] != "TargetsMet"),
            condition("TargetsMet", "False", "MinModelFlopsUtilizationMissed", "it is 20%, and 30% is declared"),
        ],
        "outlook": {"progress": "0.5", "finishAt": "2026-12-25T05:00:00Z"},
        "recommendation": {"id": "d-9", "action": "Move", "placement": place, "reason": "x", "savings": "0.23"},
    }
    body["spec"]["targets"] = {"deadline": "2026-12-25T04:00:00Z", "budget": "1000"}
    with served(browser, client, pages_of(client, now=now), "light") as shown:
        shown.page.set_viewport_size({"width": 1600, "height": 1000})
        shown.open("/")
        titles = shown.page.eval_on_selector_all("#jobs th", "cells => cells.map((cell) => cell.innerText)")
        assert len(titles) == 20
        cut = "all => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.ariaLabel)"
        assert shown.page.eval_on_selector_all(".scroll", cut) == []
        tops = "all => all.map((one) => [one.innerText, one.getBoundingClientRect().top])"
        headings = shown.page.eval_on_selector_all("h2", tops)
        assert headings[0][0].startswith("Needs attention") and headings[0][1] < 200.0


def test_the_decision_and_the_labels_of_the_roofline_are_seen(browser: Browser) -> None:
    client, now = stories()
    body = next(each for each in client.objects[PROFILED_JOBS] if each["metadata"]["name"] == "resnet50")
    body["status"]["profile"] |= {"model": {"precision": "bf16"}, "exposedCommunication": "0.02"}
    with served(browser, client, pages_of(client, now=now), "light") as shown:
        shown.page.set_viewport_size({"width": 1600, "height": 1000})
        shown.open("/jobs/vision/resnet50")
        top = shown.page.eval_on_selector("h2", "one => one.getBoundingClientRect().top")
        assert shown.page.inner_text("h2 >> nth=0").startswith("Decision:") and top < 300.0
        labels = shown.page.eval_on_selector_all(".roofline .label", "all => all.map((one) => one.textContent)")
        assert labels == ["a10g", "a100", "4×a10g (measured)", "4×a100 (predicted)"]


def test_an_update_shows_what_is_new_and_keeps_the_focus(shown: Shown) -> None:
    shown.open("/")
    link = "[id='link-job-vision/resnet50']"
    shown.page.focus(link)
    row = shown.page.query_selector("[id='job-vision/resnet50']")
    shown.client.add(PROFILED_JOBS, job("aaa", status=running_status(profile=None)))
    shown.client.objects[PROFILED_JOBS].pop(2)
    shown.update()
    names = shown.page.eval_on_selector_all("table.jobs tbody tr", "rows => rows.map((row) => row.id)")
    assert names == ["job-vision/aaa", "job-vision/moved", "job-vision/resnet50"], "one came, and one went"
    assert row is not None and row.evaluate("(row) => row.isConnected"), "the others stay the same"
    assert shown.page.evaluate("document.activeElement.id") == "link-job-vision/resnet50"
    assert shown.errors == []


def test_an_update_is_the_page_as_it_would_be_loaded(shown: Shown) -> None:
    shown.open("/?sort=name")
    shown.client.add(PROFILED_JOBS, job("aaa", "zzz", status={}))
    shown.client.objects[PROFILED_JOBS].reverse()
    shown.update()
    updated = shown.page.inner_text("main")
    shown.open("/?sort=name")
    assert shown.page.inner_text("main") == updated


def test_it_updates_by_itself(shown: Shown) -> None:
    with shown.page.expect_request(lambda asked: "x-rightpool-fragment" in asked.headers):
        shown.open("/")


def test_it_is_used_by_keyboard(shown: Shown) -> None:
    shown.open("/")
    shown.page.keyboard.press("Tab")
    assert shown.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    shown.page.keyboard.press("/")
    shown.page.keyboard.type("res")
    shown.update()
    assert shown.page.input_value("#q") == "res", "an update takes nothing from who types"
    shown.page.keyboard.press("Enter")
    shown.page.wait_for_url("**/?q=res")
    shown.page.focus("table.jobs tbody a")
    shown.page.keyboard.press("Enter")
    shown.page.wait_for_url("**/jobs/**")
    assert "vision/resnet50" in shown.page.inner_text("h1") or "research" in shown.page.inner_text("h1")


def test_commands_are_copied(shown: Shown) -> None:
    shown.page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=shown.address)
    shown.open("/jobs/vision/resnet50")
    shown.page.click("button.copy >> nth=0")
    shown.page.wait_for_selector("button.copy >> text=Copied")
    copied = shown.page.evaluate("navigator.clipboard.readText()")
    assert copied == "kubectl get pj resnet50 -n vision --context prod -o yaml"


def test_a_server_that_has_ended_is_told(shown: Shown) -> None:
    shown.open("/")
    shown.page.route("**/*", lambda route: route.abort())
    shown.page.evaluate("update()")
    assert "does not answer" in shown.page.inner_text("#server")
    assert "resnet50" in shown.page.inner_text("main"), "what was known stays"
