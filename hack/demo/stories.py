"""Seven stories. Each applies a workload, waits for the operator's decisions, and checks the result."""

import re
import shutil
import time
from typing import Any, Final

from demo.fleet import NAMESPACE, fleet
from demo.job import Job
from demo.serving import serving
from demo.stage import Stage, apply
from demo.story import MOVE_SECONDS, START_SECONDS, Say, Story, expect, paid, placed, tell_prices, wait
from rightpool.api.estimate import Estimate
from rightpool.api.ledger import LedgerEntry


def _verified(job: Job) -> bool:
    return job.condition("Verified").get("status") == "True" and job.phase is None


def training_lines(log: str) -> list[tuple[int, float]]:
    """(step, loss) of every progress line that the training program printed."""
    return [(int(m[1]), float(m[2])) for m in re.finditer(r"step[ =](\d+).*?loss[ =]([0-9.]+)", log)]


def promise_text(promised: Estimate, delivered: float) -> str:
    """Whether what a move has delivered is in the interval that it promised, samples a second. Only told: on a machine
    that does other things meanwhile, real processes get more or less than what nobody else uses."""
    low, high = promised.low, promised.high
    text = f"promised {promised.median:.0f} samples/s ({low:.0f}–{high:.0f}), delivered {delivered:.0f}: "
    if low <= delivered <= high:
        return text + "within the promised interval"
    return text + f"{'below' if delivered < low else 'above'} the promised interval, which holds in 4 of 5 cases"


def scaling(stage: Stage, say: Say) -> Job:
    """A real program that scales badly is resized from two chips to one and continues from its checkpoint.

    The chip that it leaves goes to a job that waits. So all chips are busy before and after: cores share caches, power
    and the cluster's own processes, and one with an idle neighbour would be faster than any prediction can know.
    """
    folder = stage.state / "checkpoints"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o777)  # hostPath volumes take no fsGroup, and the program runs as uid 1000
    apply(stage, "scaling.yaml", HOST_FOLDER=str(folder))
    watcher = stage.watch("research", "scaling", say)
    job = watcher.until("two replicas run", placed, START_SECONDS)
    expect(job.chips == 2, "it should have started on 2 chips", job)
    apply(stage, "ablation.yaml")
    waiting = stage.watch("research", "ablation", say)
    waiting.until("it waits for a chip", lambda j: j.condition("Placed").get("status") == "False", START_SECONDS)
    decided = watcher.until("a decision to leave 2 chips", lambda j: j.phase not in (None, "Planned"), MOVE_SECONDS)
    pods = "rightpool.dev/profiledjob=scaling,rightpool.dev/revision=1"
    before = stage.kubectl("logs", "-n", "research", "-l", pods, "-c", "trainer", "--tail=-1", "--prefix=false")
    watcher.until(
        "one replica runs",
        lambda j: j.chips == 1 and placed(j),
        START_SECONDS,
    )
    waiting.until("it has the other chip", placed, START_SECONDS)
    job = watcher.until("the move to one chip is verified", paid, MOVE_SECONDS)
    # The neighbour has done its part: its core is free for everything else on this machine.
    stage.kubectl("patch", "profiledjob", "ablation", "-n", "research", "--type=merge", '-p={"spec":{"suspend":true}}')
    expect(job.chips == 1, "it should run on 1 chip", job)
    entry = LedgerEntry.from_dict(job.history[-1])
    promised = Estimate.from_dict(decided.status["migration"]["predicted"])
    say(f"scaling: {promise_text(promised, entry.realised_throughput or 0.0)}")
    before_cost, after_cost = entry.baseline_cost_per_million, entry.realised_cost_per_million
    expect(bool(before_cost and after_cost and after_cost < before_cost), "a sample should cost less than before", job)
    number = job.status["placement"]["revision"]
    pods = f"rightpool.dev/profiledjob=scaling,rightpool.dev/revision={number}"
    after = stage.kubectl("logs", "-n", "research", "-l", pods, "-c", "trainer", "--tail=-1", "--prefix=false")
    old, new = training_lines(before), training_lines(after)
    expect(
        bool(old and new),
        f"the program should have printed its steps; it printed\n{before[-800:]}\n{after[-800:]}",
        job,
    )
    expect(new[0][0] >= old[0][0] and new[0][0] > 1, f"step {new[0][0]} after the move: it started anew", job)
    expect(new[0][1] <= old[0][1], f"loss {new[0][1]} after the move, {old[0][1]} at the start: it started anew", job)
    say(
        f"scaling: the program went on: step {old[-1][0]} loss {old[-1][1]:g} before, "
        f"step {new[0][0]} loss {new[0][1]:g} after"
    )
    return job


def cheaper_pool(stage: Stage, say: Say) -> Job:
    """ResNet-50 on A100 moves to the A10G pool, at the predicted price."""
    apply(stage, "resnet50.yaml")
    watcher = stage.watch("vision", "resnet50", say)
    job = watcher.until("it runs on a100", placed, START_SECONDS)
    expect(job.pool == "a100", "it should have started on a100, the first that it allows", job)
    job = watcher.until("the move to a10g is verified", _verified, MOVE_SECONDS)
    expect(job.pool == "a10g", "it should run on a10g", job)
    tell_prices(job, "resnet50", say)
    return job


def whole_slices(stage: Stage, say: Say) -> Job:
    """A language model moves from GPUs to TPUs, in whole slices and with its image for them."""
    apply(stage, "language-model.yaml")
    watcher = stage.watch("language", "language-model", say)
    job = watcher.until("it runs on a100", placed, START_SECONDS)
    expect(job.pool == "a100", "it should have started on a100, the first that it allows", job)
    job = watcher.until("the move to tpu-v5e is verified", _verified, MOVE_SECONDS)
    expect(job.pool == "tpu-v5e", "it should run on tpu-v5e", job)
    expect((job.chips or 0) % 8 == 0, "slices of 2x4 are 8 chips each", job)
    pods = ("get", "pods", "-n", "language", "-l", "rightpool.dev/pool=tpu-v5e")
    images = stage.kubectl(*pods, "-o", "jsonpath={.items[*].spec.containers[0].image}").split()
    expect(
        set(images) == {"example.com/language-model:1-tpu"}, f"its pods should have the image for TPUs: {images}", job
    )
    tell_prices(job, "language-model", say)
    return job


def adopted(stage: Stage, say: Say) -> Job:
    """A JobSet that runs already is adopted by a label, moves where it is, and is put back and let go of."""
    here = ("-n", "search")
    of_jobset = ("-l", "jobset.sigs.k8s.io/jobset-name=bert")

    def typed(*arguments: str) -> str:
        output = stage.kubectl(*arguments, *here)
        say(f"bert: $ kubectl {' '.join((*arguments, *here))}")
        return output

    def shown() -> None:
        for line in typed("get", "pj", "bert").splitlines():
            say(f"bert:   {line.rstrip()}")

    def running() -> bool:
        pods = stage.kubectl.json("get", "pods", *here, *of_jobset)["items"]
        return len(pods) == 2 and all(pod["status"].get("phase") == "Running" for pod in pods)

    apply(stage, "bert.yaml")
    wait("two pods of the JobSet run", running)
    before = _spec(stage)
    say("bert: a JobSet of two pods with four A100 each runs; no ProfiledJob knows of it")
    typed("label", "jobset", "bert", "rightpool.dev/adopt=recommend")
    watcher = stage.watch("search", "bert", say)
    job = watcher.until("it is found", placed, START_SECONDS)
    expect((job.pool, job.chips) == ("a100", 8), "it should be found on 8 chips of a100", job)
    shown()
    # As short as those of the other stories.
    typed("patch", "pj", "bert", "--type=merge", '-p={"spec":{"profiling":{"interval":"2s","window":"15s"}}}')
    watcher.until(
        "new pods get the profiler",
        lambda j: "when they start anew" in j.condition("Profiled").get("message", ""),
        START_SECONDS,
    )
    typed("delete", "pods", *of_jobset)
    job = watcher.until("it is recommended to move", lambda j: bool(j.status.get("recommendation")), MOVE_SECONDS)
    expect(_spec(stage) == before, "only looked at, its spec should be what it was", job)
    shown()
    typed("label", "--overwrite", "jobset", "bert", "rightpool.dev/adopt=auto")
    job = watcher.until("the move to a10g is verified", _verified, MOVE_SECONDS)
    expect((job.pool, job.chips) == ("a10g", 8), "it should run on 8 chips of a10g", job)
    tell_prices(job, "bert", say)
    shown()
    answer = stage.rightpool("release", "bert", *here)
    say(f"bert: $ rightpool release bert {' '.join(here)}")
    say(f"bert:   {answer.strip()}")
    wait("its ProfiledJob goes", lambda: not stage.kubectl("get", "pj", "bert", *here, "--ignore-not-found"))
    wait("two pods of the JobSet run again", running)
    expect(_spec(stage) == before, "let go of, its spec should be what it was", job)
    say("bert: the JobSet runs on A100 again, its spec is what it was, and its ProfiledJob is gone")
    return job


def _spec(stage: Stage) -> Any:
    """Of the JobSet. What is not suspended may say so or not."""
    return {"suspend": False, **stage.kubectl.json("get", "jobset", "bert", "-n", "search")["spec"]}


def rollback(stage: Stage, say: Say) -> Job:
    """The A10G pool is slower than published: the move does not pay and is rolled back."""
    say("the A10G pool is throttled to 40% of what was published")
    fault(stage, a10g='{"throughput": 0.4, "throttle": 0.6}')
    try:
        apply(stage, "rollback.yaml")
        watcher = stage.watch("vision", "rollback", say)
        job = watcher.until("it runs on a100", placed, START_SECONDS)
        expect(job.pool == "a100", "it should have started on a100", job)
        watcher.until("it tries a10g", lambda j: j.pool == "a10g", MOVE_SECONDS)

        def undone(j: Job) -> bool:
            return j.phase is None and j.condition("Verified").get("reason") == "RolledBack"

        job = watcher.until("the move is undone", undone, MOVE_SECONDS)
        expect(job.condition("Verified")["status"] == "False", "Verified should be False", job)
        expect(job.pool == "a100", "it should be back on a100", job)
        entry = job.history[-1]
        expect(entry["outcome"] == "RolledBack", "the ledger should say so", job)
        expect(float(entry["cost"]) > 0, "the ledger should say what it cost", job)
        say(f"rollback: the ledger says that the attempt cost ${entry['cost']} and {entry['lostSeconds']} s")
        time.sleep(15)
        job = watcher.read()
        expect(job.pool == "a100" and job.phase is None, "it should stay on a100 and not bounce", job)
        return job
    finally:
        fault(stage, a10g="{}")


def fault(stage: Stage, **pools: str) -> None:
    """Set a fault of a simulated pool. Pool names have _ for -."""
    stage.kubectl.apply(
        [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "simulation", "namespace": "kube-system"},
                "data": {name.replace("_", "-"): value for name, value in pools.items()},
            }
        ]
    )


STORIES: Final = (
    Story(
        "Real training scales badly: two chips become one, and another job has the other",
        "research",
        "scaling",
        scaling,
    ),
    Story("ResNet-50: A100 to A10G", "vision", "resnet50", cheaper_pool),
    Story("A language model: A100 to whole slices of TPU v5e", "language", "language-model", whole_slices),
    Story("A JobSet that runs already: adopted, moved, released", "search", "bert", adopted, stays=False),
    # It would take processor time from real training that is measured.
    Story(
        "A real server goes to a cheaper pool, to a slow one and back, and loses no request",
        "shop",
        "ranker",
        serving,
        after=("scaling",),
    ),
    # It slows down the pool that two of them move to.
    Story(
        "A pool slower than predicted: the move is undone", "vision", "rollback", rollback, after=("resnet50", "bert")
    ),
    # For the same reason as the server.
    Story(
        "A fleet of twelve jobs: two give chips to one that comes, until it has ended",
        NAMESPACE,
        "fleet",
        fleet,
        after=("scaling",),
        stays=False,
    ),
)
