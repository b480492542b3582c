"""Every statement that users get about the known fleet, compared with how its states were made.

What is true is computed here and in `states` and `machines`, never by the code that says it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from rightpool.cluster.resources import CONFIG_MAPS, EVENTS
from rightpool.planning.books.charge import Charge
from rightpool.planning.books.chargeback import Chargeback, ChargeKey
from rightpool.reporting.chargeback_object import config_map
from tests.integration.cli.truth import machines
from tests.integration.cli.truth.asking import Statement, table_of, words_of
from tests.integration.cli.truth.machines import A10G, A100, CLASH, CORDONED, FULL, OWN, PRICES, Body, published_rate
from tests.integration.cli.truth.scene import Scene
from tests.integration.cli.truth.states import BUDGET, IMAGE_ERROR, TYPO, UNWATCHED, WATCHED, Known
from tests.patience import eventually

Statements = Iterator[Statement]


def near(answer: float | None, true: float | None, tolerance: float = 1e-6) -> bool:
    """The same number, or both unknown."""
    if answer is None or true is None:
        return answer is true
    return math.isclose(answer, true, rel_tol=tolerance)


# A window of a few seconds on a busy machine: what is measured over it is off by as much.
MEASURED = 0.25


# --- top -------------------------------------------------------------------------------------------------------------


def of_top(scene: Scene) -> Statements:
    for asker, jobs in ((scene.user, WATCHED), (scene.other, UNWATCHED)):
        found = asker.document("top")
        lines = {line["name"]: line for line in found["jobs"]}
        yield Statement("top: the jobs", sorted(lines), lines.keys() == jobs.keys())
        yield Statement("top: notes", found["notes"], found["notes"] == [])
        for name, known in jobs.items():
            yield from of_line(name, lines[name], known)
        total = found["total"]
        holding = [known for known in jobs.values() if known.chips]
        yield Statement("top: jobs that hold chips", total["running"], total["running"] == len(holding))
        yield Statement("top: chips", total["chips"], total["chips"] == sum(known.chips for known in holding))
        hourly = sum(known.price or 0.0 for known in holding)
        yield Statement("top: an hour", total["costPerHour"], near(total["costPerHour"], hourly))
        text = asker.text("top")
        summed = f"{len(holding)} of {len(jobs)} jobs hold {sum(known.chips for known in holding)} chips"
        yield Statement("top: the sum in words", text.splitlines()[-1], summed in text)


def of_line(name: str, line: Body, known: Known) -> Statements:
    yield Statement(f"top {name}: state", line["state"], line["state"] == known.state)
    yield Statement(f"top {name}: chips", line["chips"], line["chips"] == (known.chips or None))
    yield Statement(f"top {name}: $/h", line["costPerHour"], near(line["costPerHour"], known.price))
    yield Statement(f"top {name}: rate", line["throughput"], near(line["throughput"], known.rate, MEASURED))
    per_million = None if known.rate is None or known.price is None else known.price / 3600.0 / known.rate * 1e6
    yield Statement(f"top {name}: $/M", line["costPerMillion"], near(line["costPerMillion"], per_million, MEASURED))
    if known.pool is not None:
        yield Statement(f"top {name}: pool", line["pool"], line["pool"] == known.pool)
    if not known.measured:
        yield Statement(f"top {name}: bottleneck", line["bottleneck"], line["bottleneck"] is None)
    if known.targets is not None:
        yield Statement(f"top {name}: targets", line["targets"], line["targets"] == known.targets)


def of_spending(scene: Scene) -> Statements:
    """The meter runs at the price of what is held, from the start of the pods on, and stands still otherwise."""
    first = {line["name"]: line for line in scene.user.document("top")["jobs"]}
    asked = scene.user.document("top")
    for line in asked["jobs"]:
        name, known = line["name"], WATCHED[line["name"]]
        before, spent = first[name]["spent"], line["spent"]
        if known.state in ("Suspended", "Completed", "Failed", "WaitingForQuota", "WaitingForCapacity"):
            yield Statement(f"top {name}: spends no more", (before, spent), before == spent)
        elif known.chips:
            born = datetime.fromisoformat(scene.fleet.job(name)["metadata"]["creationTimestamp"])
            most = max(PRICES.get(A100, 0.0), known.price or 0.0) * (datetime.now(UTC) - born).total_seconds() / 3600
            yield Statement(f"top {name}: spent", (before, spent), 0.0 < before <= spent <= most)
    (spender,) = [line for line in asked["jobs"] if line["name"] == "spender"]
    yield Statement("top spender: spends a dollar a second", spender["spent"], 5.0 < spender["spent"] < BUDGET)


# --- explain ---------------------------------------------------------------------------------------------------------

# What the explanation of a job must have, and must not have.
EXPLAINED: dict[str, tuple[str, str]] = {
    "steady": ("quality Measured", "does the operator run"),
    "off": ("adaptation Off", "Decision: Move"),
    "advised": (f"1 chip of {A10G}", "Decision: Keep"),
    "saving": ("has been in phase Checkpointing", "nothing was measured yet"),
    "proving": ("has been in phase WarmingUp", "Decision: Start"),
    "moved": ("Verified (Delivered)", "not all pods have run yet"),
    "warming": ("not reliable", "Limited by"),
    "crash": ("exited with 1 (Error), has failed once", "Decision: Move"),
    "image": (IMAGE_ERROR, "Limited by"),
    "typo": (f'{TYPO}"', "Limited by"),
    "holder": (f"4 chips of {FULL} in 1 pod", "Decision: Move"),
    "crowded": (f"4 chips of {FULL}", "starts on"),
    "queued": ("queue research has not admitted it yet", "starts on"),
    "asleep": ("spec.suspend is true", "starts on"),
    "never": ("spec.suspend is true", "starts on"),
    "done": ("the child Job succeeded", "Could be"),
    "failed": ("Report", "Could be"),
    "late": ("the deadline passed {hours:.1f} h ago", "Targets hold"),
    "intime": ("Targets hold", "do not hold"),
    "risk": ("Targets do not hold (DeadlineAtRisk)", "the deadline passed"),
    "spender": ("Targets do not hold (BudgetAtRisk)", "Targets hold"),
    "unseen": ("no operator has looked at the job", "starts on"),
    "foreign": ("this operator does not touch the job", "starts on"),
    "last": ("Finishing", "starts on"),
    "old": ("measured {hours:.1f} h ago", "does the operator run"),
}


def hours_since(scene: Scene, name: str) -> float:
    """Since the deadline of `late`, or the measurement of `old`."""
    if name == "late":
        then = scene.fleet.job(name)["spec"]["targets"]["deadline"]
    else:
        then = scene.elsewhere.status(name)["profile"]["measuredAt"]
    return (datetime.now(UTC) - datetime.fromisoformat(then)).total_seconds() / 3600.0


def of_explain(scene: Scene) -> Statements:
    born = datetime.fromisoformat(scene.elsewhere.job("unseen")["metadata"]["creationTimestamp"])
    # From a minute on it is not taken for a new one any more.
    eventually(lambda: datetime.now(UTC) - born > timedelta(minutes=1, seconds=5), "unseen is no new job")
    for asker, jobs in ((scene.user, WATCHED), (scene.other, UNWATCHED)):
        listed = {item["name"]: item for item in asker.document("explain")["items"]}
        for name, known in jobs.items():
            hours = [hours_since(scene, name)] if name in ("late", "old") else []
            text = asker.text("explain", name)
            first = text.splitlines()[0]
            yield Statement(f"explain {name}: state", first, first == f"{asker.namespace}/{name}: {known.state}")
            yield Statement(f"explain: state of {name}", listed[name], listed[name]["state"] == known.state)
            has, has_not = EXPLAINED[name]
            # It was asked between these two moments.
            right = {has.format(hours=age) for age in (hours[0], hours_since(scene, name))} if hours else {has}
            yield Statement(f"explain {name}: {has}", text, any(words in " ".join(text.split()) for words in right))
            yield Statement(f"explain {name}: not {has_not}", text, has_not not in " ".join(text.split()))
            runs = f"Runs on\n  placement    {known.chips} chip" in text
            yield Statement(f"explain {name}: runs on {known.chips} chips", text, runs == bool(known.chips))
            if not known.measured:
                continue
            found = asker.document("explain", name)
            values = (found["profile"] or {}).get("values") or {}
            rate = values.get("samplesPerSecond")
            yield Statement(f"explain {name}: rate", rate, near(rate, known.rate, MEASURED))
            fields = {item["name"]: item["value"] for item in asker.document("profile", name)["fields"]}
            same = {key: value for key, value in values.items() if not near(fields.get(key), value, MEASURED)}
            yield Statement(f"profile {name}: as explain has it", fields, bool(fields) and not same)
            rate = fields.get("samplesPerSecond")
            yield Statement(f"profile {name}: rate", rate, near(rate, known.rate, MEASURED))
            candidates = [item for item in found["candidates"] if item["verdict"] == "Eligible"]
            unusable = [item["pool"] for item in candidates if item["pool"] in (CORDONED, CLASH)]
            yield Statement(f"explain {name}: candidates", unusable, unusable == [])


# --- pools, recommend, history ---------------------------------------------------------------------------------------


def of_pools(scene: Scene) -> Statements:
    found = scene.user.document("pools")
    pools = {pool["name"]: pool for pool in found["pools"]}
    problems = {item["pool"]: item["message"] for item in found["problems"]}
    for name in machines.USABLE:
        pool = pools[name]
        used = sum(known.chips for known in WATCHED.values() if known.pool == name)
        total = machines.chips_of(name)
        chips = pool["chips"]
        yield Statement(f"pools {name}: nodes", pool["nodes"], pool["nodes"] == machines.NODES[name])
        yield Statement(f"pools {name}: chips", chips, (chips["total"], chips["free"]) == (total, total - used))
        yield Statement(f"pools {name}: price", pool["pricePerChipHour"], near(pool["pricePerChipHour"], PRICES[name]))
        yield Statement(f"pools {name}: source", pool["source"], pool["source"] == "declared")
        yield Statement(f"pools {name}: problems", pool["problems"], pool["problems"] == [])
    figures = {name: pools[name]["figures"] for name in (A100, OWN)}
    yield Statement("pools: figures", figures, figures == {A100: "verified", OWN: "declared"})
    cordoned = pools[CORDONED]
    yield Statement("pools cordoned: chips", cordoned["chips"], cordoned["chips"]["free"] == 0)
    yield Statement("pools cordoned: why", cordoned["problems"], "2 cordoned" in " ".join(cordoned["problems"]))
    yield Statement("pools clash: left out", sorted(pools), CLASH not in pools)
    yield Statement("pools clash: why", problems.get(CLASH), "spec.chip.memory" in problems.get(CLASH, ""))


def of_recommend(scene: Scene) -> Statements:
    found = scene.user.document("recommend")
    items = {item["name"]: item for item in found["items"]}
    yield Statement("recommend: jobs", sorted(items), items.keys() == {"advised"})
    item = items["advised"]
    here, there = (item["from"]["pool"], item["from"]["chips"]), (item["to"]["pool"], item["to"]["chips"])
    yield Statement("recommend advised: from", here, here == (A100, 1))
    yield Statement("recommend advised: to", there, there == (A10G, 1))
    yield Statement("recommend advised: $/h", item["costPerHour"], near(item["costPerHour"], PRICES[A10G]))
    yield Statement("recommend advised: held by", item["heldBy"], item["heldBy"] == "PolicyRecommendOnly")
    # By the rates that are published; the one there is a prediction.
    had = PRICES[A100] - PRICES[A10G] * published_rate(A100, 1) / published_rate(A10G, 1)
    savings = item["potentialSavingsPerHour"]
    yield Statement("recommend advised: potential savings", savings, near(savings, had, 0.5))
    summed = sum(item["potentialSavingsPerHour"] for item in items.values())
    yield Statement(
        "recommend: the sum", found["potentialSavingsPerHour"], near(found["potentialSavingsPerHour"], summed)
    )


def of_history(scene: Scene) -> Statements:
    items = scene.user.document("history")["items"]
    yield Statement("history: jobs", items, [item["name"] for item in items] == ["moved"])
    entry = items[0]["entry"]
    way = (entry["from"]["pool"], entry["to"]["pool"], entry["outcome"])
    yield Statement("history moved: the way", way, way == (A100, A10G, "Verified"))
    for key, price, pool in (("baseline", "fromPerHour", A100), ("realised", "toPerHour", A10G)):
        rate, dollars = entry[key], entry[price]
        yield Statement(f"history moved: {key} rate", rate, near(rate, machines.published_rate(pool, 1), MEASURED))
        yield Statement(f"history moved: {price}", dollars, near(dollars, PRICES[pool]))
    text = scene.user.text("history", "steady")
    yield Statement("history steady", text, "nothing has been moved" in text)


# --- kubectl ---------------------------------------------------------------------------------------------------------


def of_kubectl(scene: Scene) -> Statements:
    rows = scene.user.columns()
    yield Statement("kubectl get: jobs", sorted(rows), rows.keys() == WATCHED.keys())
    for name, known in WATCHED.items():
        row = rows[name]
        yield Statement(f"kubectl get {name}: chips", row["Chips"], row["Chips"] == (str(known.chips or "")))
        answer = float(row["$/h"]) if row["$/h"] else None
        yield Statement(f"kubectl get {name}: $/h", row["$/h"], near(answer, known.price, 1e-3))
        rate = float(row["Samples/s"]) if row["Samples/s"] else None
        yield Statement(f"kubectl get {name}: samples/s", row["Samples/s"], near(rate, known.rate, MEASURED))
        if not known.measured:
            yield Statement(f"kubectl get {name}: bottleneck", row["Bottleneck"], row["Bottleneck"] == "")
            yield Statement(f"kubectl get {name}: $/M", row["$/M"], row["$/M"] == "")
        moving = known.state if name in ("saving", "proving") else ""
        yield Statement(f"kubectl get {name}: phase", row["Phase"], row["Phase"] == moving)
        goes = row["Would-go-to"]
        yield Statement(f"kubectl get {name}: would go to", goes, bool(goes) == (name == "advised"))
        status = {
            "saving": "Running",
            "proving": "Running",
            "Completed": "JobCompleted",
            "Failed": "JobFailed",
        }
        true = status.get(name) or status.get(known.state) or known.state
        yield Statement(f"kubectl get {name}: status", row["Status"], row["Status"] == true)


# Job → condition, its reason, and what its message has.
CONDITIONS: dict[str, tuple[str, str, str]] = {
    "crash": ("Placed", "CrashLoop", "No module named 'torch'"),
    "image": ("Placed", "ContainerNotStarted", IMAGE_ERROR),
    "queued": ("Placed", "WaitingForQuota", "queue research"),
    "crowded": ("Placed", "WaitingForCapacity", FULL),
    "asleep": ("Placed", "Suspended", "set it to false to run the job"),
    "done": ("Completed", "JobCompleted", "succeeded"),
    "failed": ("Failed", "JobFailed", ""),
    "saving": ("Migrating", "Moving", f"1 chip of {A100} → 1 chip of {A10G}, Checkpointing"),
    "proving": ("Verified", "VerificationPending", "WarmingUp"),
    "moved": ("Verified", "Delivered", "better than before"),
    "warming": ("Profiled", "WarmingUp", "the window of 60 min is not full yet"),
    "late": ("TargetsMet", "DeadlineMissed", "the deadline was"),
    "risk": ("TargetsMet", "DeadlineAtRisk", "missed with probability 100%"),
    "spender": ("TargetsMet", "BudgetAtRisk", "of the budget are left"),
}


def of_conditions(scene: Scene) -> Statements:
    for name, (kind, reason, has) in CONDITIONS.items():
        found = scene.fleet.condition(name, kind)
        answer = f"{found.get('reason')}: {found.get('message')}"
        yield Statement(f"{kind} of {name}", answer, found.get("reason") == reason and has in str(found.get("message")))


def of_events(scene: Scene) -> Statements:
    published: dict[str, set[tuple[str, str]]] = {}
    for event in scene.fleet.client.list_all(EVENTS, scene.fleet.namespace):
        if event["involvedObject"]["kind"] == "ProfiledJob":
            published.setdefault(event["involvedObject"]["name"], set()).add((event["type"], event["reason"]))
    for name, reason in (("crash", "CrashLoop"), ("typo", "InvalidTemplate"), ("image", "ContainerNotStarted")):
        yield Statement(f"Events of {name}", published.get(name), ("Warning", reason) in published.get(name, ()))
    for name in ("steady", "moved", "intime", "holder"):
        warned = {reason for kind, reason in published.get(name, ()) if kind == "Warning"}
        yield Statement(f"Events of {name}: no warning", warned, not warned)


# --- the page, the report --------------------------------------------------------------------------------------------


def of_page(scene: Scene) -> Statements:
    with scene.user.browser() as browser:
        fleet = browser.get("/").text
        rows = table_of(fleet, "job-")
        for name, known in WATCHED.items():
            row = rows[f"{scene.user.namespace}/{name}"]
            yield Statement(f"page {name}: state", row["STATE"], row["STATE"] == known.state)
            yield Statement(f"page {name}: chips", row["CHIPS"], row["CHIPS"] == str(known.chips or "-"))
            rate = None if row["SAMPLES/S"] == "-" else float(row["SAMPLES/S"])
            yield Statement(f"page {name}: rate", row["SAMPLES/S"], near(rate, known.rate, MEASURED))
        pools = table_of(fleet, "pool-")
        for pool in machines.USABLE:
            used = sum(known.chips for known in WATCHED.values() if known.pool == pool)
            answer = pools[pool]["IN USE"]
            yield Statement(f"page: {pool} in use", answer, answer == f"{100 * used / machines.chips_of(pool):.0f}%")
        yield Statement("page: no alert", "", 'id="quiet"' not in fleet)
        yield Statement("page: cordoned", "", "2 cordoned" in words_of(fleet))
        for name in ("crash", "warming", "asleep", "moved", "crowded"):
            text = words_of(browser.get(f"/jobs/{scene.user.namespace}/{name}").text)
            has, has_not = EXPLAINED[name]
            yield Statement(f"page of {name}: {has}", text, has in text)
            yield Statement(f"page of {name}: not {has_not}", text, has_not not in text)


def of_report(scene: Scene) -> Statements:
    """Of books that were written by hand: two days, two teams, two pools."""
    day, spent = datetime.now(UTC).date().isoformat(), {"vision": 12.5, "language": 30.25}
    books = Chargeback()
    books.rows[day] = {
        ChargeKey("vision", A100, "OnDemand"): Charge(spent["vision"], 2.0, 0.5, 36_000.0, 18_000.0),
        ChargeKey("language", A10G, "OnDemand"): Charge(spent["language"], 0.0, 0.0, 7_200.0, 7_200.0),
    }
    where = scene.elsewhere.namespace
    scene.elsewhere.client.create(CONFIG_MAPS, config_map(where, "research", books, None))
    for by, names in (("team", ("language", "vision")), ("pool", (A10G, A100)), ("namespace", ("research",))):
        asker = scene.user
        words = ("--by", by, "-n", "research", "--operator-namespace", where)
        found = asker.document("report", *words)
        answer = [row[by] for row in found["rows"]]
        yield Statement(f"report by {by}: rows", answer, answer == list(names))
        total = found["total"]
        yield Statement(f"report by {by}: spent", total["spent"], near(total["spent"], sum(spent.values())))
        yield Statement(f"report by {by}: saved", total["saved"], near(total["saved"], 1.5))
        yield Statement(f"report by {by}: chip-hours", total["chipHours"], near(total["chipHours"], 12.0))
        yield Statement(f"report by {by}: goodput", total["goodput"], near(total["goodput"], 25.2 / 43.2, 1e-3))


def of_approval(scene: Scene) -> Statements:
    """What is approved is carried out, and said while it is under way and afterwards."""
    recommended = next(item for item in scene.user.document("recommend")["items"] if item["name"] == "advised")
    answer = scene.user.text("approve", "advised")
    yield Statement(
        "approve",
        answer,
        answer == f"approved {recommended['id']}: {scene.user.namespace}/advised goes to 1 chip of {A10G}\n",
    )
    eventually(lambda: (scene.fleet.status("advised").get("placement") or {}).get("pool") == A10G, "it is moved")
    eventually(lambda: scene.fleet.running("advised", "advised-r2"), "it runs there")
    (line,) = [line for line in scene.user.document("top")["jobs"] if line["name"] == "advised"]
    yield Statement("top advised: pool", line["pool"], line["pool"] == A10G)
    yield Statement("top advised: $/h", line["costPerHour"], near(line["costPerHour"], PRICES[A10G]))
    yield Statement("top advised: state", line["state"], line["state"] in ("WarmingUp", "Verifying", "Running"))
    # The rate of one place and the price of another give nothing.
    rate = line["throughput"]
    yield Statement("top advised: rate", rate, rate is None or near(rate, published_rate(A10G, 1), MEASURED))
    offered = {item["name"] for item in scene.user.document("recommend")["items"]}
    yield Statement("recommend: what is done", offered, offered == set())
    row = scene.user.columns()["advised"]
    yield Statement("kubectl get advised: would go to", row["Would-go-to"], row["Would-go-to"] == "")


def of_no_operator(scene: Scene) -> Statements:
    """Without an operator nobody may be told that something is about to happen."""
    scene.operator.terminate()
    has = "no operator leads"
    commands = (("top", ()), ("explain", ()), ("explain", ("steady",)), ("profile", ("steady",)), ("recommend", ()))
    for command, words in (*commands, ("report", ())):
        answer = scene.user.text(command, *words)
        yield Statement(f"{command} without an operator", answer, has in answer)
        if command != "report":
            notes = str(scene.user.document(command, *words)["notes"])
            yield Statement(f"{command} -o json without an operator", notes, has in notes)
    with scene.user.browser() as browser:
        for path in ("/", f"/jobs/{scene.user.namespace}/steady"):
            yield Statement(f"page {path} without an operator", "", has in words_of(browser.get(path).text))
