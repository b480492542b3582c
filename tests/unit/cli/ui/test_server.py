"""The server of the page: what it shows, to whom, and what it does with hostile strings and broken clusters."""

from __future__ import annotations

import argparse
import html
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rightpool.cli.connection import CliError, Connection
from rightpool.cli.explain import explain
from rightpool.cli.explanation import print_explanation
from rightpool.cli.job_table import print_jobs, ranked
from rightpool.cli.pools import print_pools
from rightpool.cli.trace_summary import show
from rightpool.cli.ui import command
from rightpool.cli.ui.cached import Cached
from rightpool.cli.ui.fleet import JOBS_SHOWN
from rightpool.cluster.errors import Forbidden, Unavailable
from rightpool.cluster.resources import ACCELERATOR_POOLS, EVENTS, NODES, PODS, PROFILED_JOBS
from rightpool.planning.jobs.job import JobKey
from rightpool.reporting.stored_job import read_job
from tests.patience import PATIENCE
from tests.unit.cli.cluster import NOW, FakeClient, condition, job, moment, printed, running_status, view_of
from tests.unit.cli.ui.pages import HOME, abandoned, browser_of, decision, event, fleet, pages_of

MOVED = "/jobs/vision/moved"


def words(text: str) -> list[str]:
    """The text of a page, or what a command prints, word by word."""
    return html.unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<(svg|button).*?</\1>", " ", text, flags=re.S))).split()


def text_of(client: FakeClient, path: str, **more: Any) -> str:
    return " ".join(words(browser_of(client, **more).get(path).text))


# --- the same numbers and words ------------------------------------------------------------------------------------


def test_jobs_are_shown_as_top_prints_them() -> None:
    client = fleet()
    page, stream = printed()
    print_jobs(page, ranked(view_of(client).jobs(None).values(), NOW), None)
    _, *lines = stream.getvalue().splitlines()
    shown = [word for word in text_of(client, "/").split() if word != "-"]
    for line in lines:
        assert " ".join(word for word in line.split() if word != "-") in " ".join(shown)


def test_pools_are_shown_as_pools_prints_them() -> None:
    client = fleet()
    page, stream = printed()
    print_pools(page, view_of(client).fleet())
    shown = text_of(client, "/")
    for line in stream.getvalue().splitlines():
        assert " ".join(line.split()) in shown


@pytest.mark.parametrize("name", ["resnet50", "moved"])
def test_a_job_is_explained_as_explain_prints_it(name: str) -> None:
    client = fleet()
    page, stream = printed()
    print_explanation(page, explain(view_of(client), JobKey("vision", name), NOW), everything=True)
    shown = text_of(client, f"/jobs/vision/{name}")
    for line in stream.getvalue().splitlines():
        assert " ".join(line.split()) in shown


def test_the_fleet_in_numbers() -> None:
    shown = text_of(fleet(), "/")
    assert "an hour $40.56" in shown
    assert "an hour that can be saved $12.24" in shown
    assert "jobs that hold chips 2 of 3" in shown
    assert "chips in use 8 of 24" in shown
    assert "circuit breaker closed" in shown


def test_what_was_promised_and_delivered_and_when_it_ends() -> None:
    row = next(line for line in browser_of(fleet()).get("/").text.splitlines() if 'id="job-vision/moved"' in line)
    assert words(row)[-2:] == ["0.915", "0.92"]
    assert "2.0 h" in " ".join(words(row))


def test_one_job_has_its_timeline_events_and_commands() -> None:
    shown = text_of(fleet(), MOVED)
    assert "25 min ago, for 8 min 4×a10g 2500 samples/s 6100 samples/s Move d-2: RolledBack" in shown
    assert "exposed communication 10%" in shown
    assert "60 s ago Normal Moved 3 4 chips of a100 deliver 6070 samples/s" in shown
    assert "kubectl describe pj moved -n vision --context prod" in shown
    assert "rightpool approve" not in shown, "nothing is recommended"
    assert "rightpool approve resnet50 -n vision --context prod --id d-2-a10g-4" in text_of(
        fleet(), "/jobs/vision/resnet50"
    )


def test_the_newest_trace_is_shown_as_its_command_prints_it() -> None:
    client = fleet()
    summary = {
        "on": "Device",
        "seconds": "0.5",
        "parts": [{"part": "Compute", "share": "0.76"}, {"part": "Input", "share": "0.24", "limit": "1.31"}],
        "operations": [{"name": "gemm", "count": 8, "share": "0.5", "flopsPerSecond": "100000000000000"}],
        "memory": {"peakBytes": 2**34, "at": "0.43", "timeline": [2**33, 2**34]},
    }
    about = {"id": "now", "state": "Captured", "since": moment(60), "rank": 0, "revision": 3, "pod": "moved-0"}
    body = client.objects[PROFILED_JOBS][1]
    assert "trace" not in text_of(client, MOVED).lower()
    body["status"]["trace"] = {**about, "summary": summary}
    shown, (page, stream) = text_of(client, MOVED), printed()
    trace = read_job(body).job.state.trace
    assert trace is not None and trace.summary is not None
    show(trace, trace.summary, page)
    for line in stream.getvalue().splitlines():
        assert " ".join(line.split()) in shown
    assert "waiting for data 24% without it at most 1.31× as fast" in shown
    assert "gemm 8 50% 100 T" in shown and "at most 16.0 GiB, after 43% of the time" in shown


def test_a_rate_that_is_not_steady_is_not_on_the_timeline() -> None:
    client = fleet()
    moved = client.objects[PROFILED_JOBS][1]["status"]
    moved["conditions"] = [condition("Profiled", "False", "WarmingUp")]
    assert "17 min ago, for 17 min 4×a100 - - revision 1, now" in text_of(client, MOVED)


def test_events_of_an_earlier_job_of_the_name_are_not_its_own() -> None:
    client = fleet()
    client.add(EVENTS, event("moved", "vision", "another", "of old", ago=5.0))
    assert "of old" not in text_of(client, MOVED)


def test_that_the_breaker_is_open_is_said_with_its_reason() -> None:
    client = fleet()
    for name, namespace, pool in (("a", "x", "a100"), ("b", "y", "a10g"), ("c", "x", "a10g"), ("d", "y", "a100")):
        history = [decision(1, "RolledBack", "a10g" if pool == "a100" else "a100", pool, 900, 800)]
        client.add(PROFILED_JOBS, job(name, namespace, status=running_status(history=history, ledgerCount=1)))
    shown = text_of(client, "/")
    assert "circuit breaker open" in shown
    assert re.search(r"The circuit breaker is open: \d of the last \d moves had to be undone", shown)


def test_that_no_operator_leads_is_said_on_both_pages() -> None:
    for path in ("/", MOVED):
        assert "no operator leads since 10 min" in text_of(abandoned(fleet()), path)
        assert "no operator leads" not in text_of(fleet(), path)


# --- filter, order, length -----------------------------------------------------------------------------------------


def names(client: FakeClient, query: str) -> list[str]:
    return re.findall(r'<tr id="job-[^/"]*/([^"]*)"', browser_of(client).get(f"/{query}").text)


def test_jobs_are_filtered_and_sorted() -> None:
    assert names(fleet(), "") == ["moved", "resnet50", "waiting"]
    assert names(fleet(), "?sort=saves") == ["resnet50", "waiting", "moved"]
    assert names(fleet(), "?sort=end")[0] == "moved"
    assert names(fleet(), "?q=RESEARCH") == ["waiting"]
    assert names(fleet(), "?q=unseen&sort=name") == ["waiting"]
    assert names(fleet(), "?sort=nothing&q=nothing") == []
    assert "0 of 3 jobs have it" in text_of(fleet(), "/?q=nothing")


def test_a_long_list_is_cut_and_says_so() -> None:
    client = FakeClient()
    for number in range(JOBS_SHOWN + 5):
        client.add(PROFILED_JOBS, job(f"job-{number}", status={}))
    assert len(names(client, "")) == JOBS_SHOWN and len(names(client, "?all=1")) == JOBS_SHOWN + 5
    assert f"The first {JOBS_SHOWN} are shown: show all {JOBS_SHOWN + 5}" in text_of(client, "/")
    assert f"0 of {JOBS_SHOWN + 5} jobs hold 0 chips" in text_of(client, "/"), "the sums are of all"


def test_an_empty_cluster() -> None:
    shown = text_of(FakeClient(), "/")
    assert "There are no ProfiledJobs here" in shown and "There are no pools" in shown


def test_an_update_is_the_content_of_the_page() -> None:
    browser = browser_of(fleet())
    for path in ("/", MOVED):
        fragment = browser.get(path, headers={"X-Rightpool-Fragment": "1"}).text
        assert "<html" not in fragment and fragment.strip() in browser.get(path).text


# --- who is let in -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8270", "127.0.0.1.evil.example", "", "10.0.0.1:8270"])
def test_another_name_of_this_machine_is_refused(host: str) -> None:
    for path in ("/", MOVED, "/static/page.js"):
        answer = browser_of(fleet()).get(path, headers={"host": host})
        assert answer.status_code == 400 and "vision" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:8270", "localhost:8270", "localhost"])
def test_its_own_names_are_not(host: str) -> None:
    assert browser_of(fleet()).get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_can_be_written(method: str) -> None:
    for path in ("/", MOVED, "/static/page.js"):
        assert browser_of(fleet()).request(method, path).status_code == 405


@pytest.mark.parametrize("path", ["/", MOVED, "/static/page.css", "/nowhere", "/jobs/vision/nobody"])
def test_every_answer_forbids_what_the_page_does_not_need(path: str) -> None:
    headers = browser_of(fleet()).get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    assert headers["cache-control"] == "no-store" and headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


def test_the_page_asks_nobody_else() -> None:
    browser = browser_of(fleet())
    everything = [browser.get(path).text for path in ("/", MOVED, "/static/page.css", "/static/page.js")]
    for text in everything:
        assert not re.search(r"https?://|@import|url\((?!data:)", text)
        assert not re.search(r"<(script|style)>|\bstyle=|\bon\w+=\"", text), "the policy forbids it"


@pytest.mark.parametrize("path", ["/static/../server.py", "/static/%2e%2e/server.py", "/static/page.html", "/static/"])
def test_no_other_file_is_served(path: str) -> None:
    assert browser_of(fleet()).get(path).status_code == 404


# --- hostile strings ------------------------------------------------------------------------------------------------

EVIL = "</title><script>alert(1)</script><img src=x onerror='alert(2)'>\"'{{ 7*7 }}{% raw %}"


def hostile() -> FakeClient:
    """What a tenant can put where the page shows it; names, too, as if the API server let them."""
    client = fleet()
    conditions = [
        condition("Placed", "False", "CrashLoop", EVIL),
        condition("TargetsMet", "False", "DeadlineMissed", EVIL),
    ]
    history = [decision(1, "Verified", "a10g", EVIL, 900, 800, message=EVIL, id=EVIL)]
    offered = {
        "id": EVIL,
        "action": "Move",
        "placement": {"pool": EVIL, "chips": 4, "replicas": 1, "capacity": "OnDemand"},
        "reason": "CheaperPoolMeetsTargets",
        "heldBy": "AwaitingApproval",
        "message": EVIL,
    }
    status = running_status(conditions=conditions, history=history, ledgerCount=1, recommendation=offered)
    status["profile"]["bottleneck"] = EVIL
    body = client.add(PROFILED_JOBS, job(EVIL, EVIL, status=status))
    client.add(EVENTS, event(EVIL, EVIL, body["metadata"]["uid"], EVIL) | {"reason": EVIL})
    return client


def test_hostile_strings_are_text() -> None:
    browser = browser_of(hostile())
    address = re.findall(r'href="(/jobs/%[^"]*)"', browser.get("/").text)
    assert address and all("<" not in each and "'" not in each for each in address)
    # Names with a slash can't be reached by the path of a job; whatever the answer is, it is text.
    for path in ("/", f"/?q={EVIL}&sort={EVIL}", address[0], "/jobs/x/" + EVIL.replace("/", "")):
        text = browser.get(path).text
        assert "<script>" not in text and "<img" not in text and "49" not in re.findall(r"7\*7.{5}|49}}", text)
        assert "&lt;script&gt;" in text or "no such page" in text


def test_hostile_strings_of_one_job_are_text() -> None:
    client = fleet()
    stored = client.objects[PROFILED_JOBS]
    evil = hostile().objects[PROFILED_JOBS][-1]
    stored[1] = {**evil, "metadata": stored[1]["metadata"]}
    client.add(EVENTS, event("moved", "vision", stored[1]["metadata"]["uid"], EVIL, ago=1.0) | {"reason": EVIL})
    text = browser_of(client).get(MOVED).text
    assert text.count("&lt;script&gt;alert(1)") >= 5
    assert "<script>" not in text and "<img" not in text and "{{ 7*7 }}" in html.unescape(text)


# --- clusters that refuse -------------------------------------------------------------------------------------------


class Broken(FakeClient):
    """Raises `error` for everything."""

    error: Exception = Unavailable("connection refused")

    def list_all(self, *arguments: Any, **options: Any) -> list[dict[str, Any]]:
        raise self.error


@pytest.mark.parametrize("path", ["/", MOVED])
@pytest.mark.parametrize(
    ("error", "sentence", "status"),
    [
        (Unavailable("connection refused"), "the cluster does not answer: connection refused", 502),
        (Forbidden("profiledjobs is forbidden", status=403), "the cluster does not allow it: profiledjobs", 502),
        (KeyError("uid"), "a defect of Rightpool; please report it: KeyError: 'uid'", 500),
    ],
)
def test_what_went_wrong_is_said_in_a_sentence(path: str, error: Exception, sentence: str, status: int) -> None:
    client = Broken()
    client.error = error
    answer = browser_of(client).get(path)
    assert answer.status_code == status and sentence in " ".join(words(answer.text))
    assert "Traceback" not in answer.text


def test_what_was_read_last_stays_with_its_time() -> None:
    client = fleet()
    pages = pages_of(client)
    assert pages.fleet.latest().problem is None
    client.objects.pop(PROFILED_JOBS)
    latest = pages.fleet.renew()
    assert latest.value is not None and latest.problem is not None


def test_a_tenant_sees_what_a_tenant_may() -> None:
    client = fleet()
    client.forbidden = {PROFILED_JOBS, NODES, PODS}
    shown = text_of(client, "/")
    assert "jobs of other namespaces can't be listed" in shown
    assert "moved" in shown and "waiting" not in shown
    assert "a100" in shown, "the pools, as the operator counted them"
    client.forbidden = {ACCELERATOR_POOLS}
    shown = text_of(client, "/")
    assert "the pools are not shown: the cluster does not allow it" in shown and "ClusterRoleBinding" in shown
    assert "moved" in shown and "There are no pools" not in shown
    assert "the cluster does not allow it" in text_of(client, MOVED)


def test_one_namespace_where_one_is_asked_for() -> None:
    assert "waiting" not in text_of(fleet(), "/", everywhere=False)


def test_a_job_that_is_not_there() -> None:
    answer = browser_of(fleet()).get("/jobs/vision/moveed")
    assert answer.status_code == 404
    assert "there is no ProfiledJob moveed in namespace vision; did you mean moved?" in html.unescape(answer.text)
    assert browser_of(fleet()).get("/nowhere").status_code == 404


# --- what is kept ---------------------------------------------------------------------------------------------------


def test_what_is_fresh_is_not_read_again() -> None:
    now = 0.0
    reads = iter("ab")
    kept = Cached(lambda: next(reads), 5.0, clock=lambda: now)
    first = kept.latest()
    now = 4.0
    assert (first.value, kept.latest().value, next(reads)) == ("a", "a", "b")


def test_what_takes_long_to_read_is_read_less_often() -> None:
    now = 0.0
    reads = 0

    def read() -> int:
        nonlocal now, reads
        now, reads = now + 10.0, reads + 1
        return reads

    kept = Cached(read, 5.0, clock=lambda: now)
    assert kept.latest().value == 1
    now += 29.0
    assert (kept.latest().value, reads) == (1, 1), "a read of 10 s is followed by 30 s of rest"


def test_what_is_very_old_is_waited_for() -> None:
    now = 0.0
    reads = iter("ab")
    kept = Cached(lambda: next(reads), 5.0, clock=lambda: now)
    assert kept.latest().value == "a"
    now = 3600.0
    assert kept.latest().value == "b", "nobody has looked for an hour"


def test_what_is_old_is_shown_while_it_is_read_again() -> None:
    began, go = threading.Event(), threading.Event()
    now = 0.0

    def read() -> Iterator[str]:
        yield "old"
        began.set()
        go.wait(PATIENCE)
        yield "new"

    reads = read()
    kept = Cached(lambda: next(reads), 5.0, clock=lambda: now)
    assert kept.latest().value == "old"
    now = 10.0
    assert kept.latest().value == "old", "nobody waits"
    assert began.wait(PATIENCE)
    assert kept.latest().value == "old", "nor is it read twice at once"
    go.set()
    while kept.latest().value == "old":
        go.wait(0.001)
    assert kept.latest().value == "new"


# --- the command -----------------------------------------------------------------------------------------------------


def options(*more: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(more)


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CliError, match=f"port {port} can't be used .*--port"):
            command._serve(Connection(fleet(), "vision"), options("--port", str(port)))  # type: ignore[arg-type]


def test_without_the_extra_it_says_what_to_install() -> None:
    program = (
        "import sys, importlib.util; real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'uvicorn' else real(name, *more)\n"
        "from rightpool.cli.connection import CliError, Connection; from rightpool.cli.ui import command\n"
        "try: command._serve(Connection(None, 'x'), None)\n"
        "except CliError as error: print(error)\n"
        "print([name for name in ('jinja2', 'starlette', 'uvicorn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True)
    printed, loaded = done.stdout.splitlines()
    assert printed.startswith("uvicorn is not installed, which the page needs: pip install 'rightpool[ui]'")
    assert loaded == "[]", "the other commands pay nothing for it"


def test_it_listens_on_this_machine_alone() -> None:
    with command._listening(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
        socket.create_connection(listener.getsockname(), timeout=PATIENCE).close()
    assert f"http://{command.HOST}:{command.PORT}" == HOME
