"""Start a cluster of one node, install the chart, run seven stories, and show the objects.

    make demo        python -m demo
    make demo V=1    python -m demo -v: also what every condition says, and the objects

Needs root. The first run builds Kubernetes' programs, about twenty minutes. The cluster stays up afterwards: `make env`
prints what a shell needs, and `make down` ends it. Exit code 0 only if all seven stories happened.
"""

import argparse
import sys
import threading
from collections.abc import Callable
from dataclasses import replace

from demo.job import Job, StoryFailed
from demo.plain import everything
from demo.stage import SYSTEM, Stage, forget, logs, prepare
from demo.stories import STORIES
from demo.story import Story
from devcluster import cluster, host
from devcluster.progress import Progress
from devcluster.spec import DEMO, DevclusterError

_AS_WRITTEN = argparse.RawDescriptionHelpFormatter


def tell(stage: Stage, stories: tuple[Story, ...], say: Callable[[str], None]) -> dict[str, Job | Exception]:
    """Run stories side by side, each after those that it waits for; a story's failure is its result. An interrupt
    waits for none of them."""
    results: dict[str, Job | Exception] = {}
    threads: dict[str, threading.Thread] = {}

    def one(story: Story) -> None:
        for earlier in story.after:
            threads[earlier].join()
        try:
            results[story.name] = story.tell(stage, say)
        except Exception as error:  # any error counts as a failed story
            results[story.name] = error

    for story in stories:
        threads[story.name] = threading.Thread(target=one, args=(story,), daemon=True)
        threads[story.name].start()
    for thread in threads.values():
        thread.join()
    return results


def show(stage: Stage, story: Story) -> None:
    """Show the objects of a story by the commands that a user would type."""
    print(f"\n=== {story.title} ===")
    namespace = ["-n", story.namespace]
    conditions = (
        'jsonpath={range .status.conditions[*]}{.type}{"\\t"}{.status}{"\\t"}{.reason}{"\\t"}{.message}{"\\n"}{end}'
    )
    for shown, text in (
        (f"kubectl get pj {story.name} -o wide", stage.kubectl("get", "pj", story.name, *namespace, "-o", "wide")),
        ("conditions", stage.kubectl("get", "pj", story.name, *namespace, "-o", conditions)),
        (
            f"kubectl events --for profiledjob/{story.name}",
            stage.kubectl("events", "--for", f"profiledjob/{story.name}", *namespace),
        ),
        (f"rightpool explain {story.name}", stage.rightpool("explain", story.name, *namespace)),
    ):
        print(f"\n$ {shown}\n{text.rstrip()}")


def main() -> int:
    parser = argparse.ArgumentParser("python -m demo", description=__doc__, formatter_class=_AS_WRITTEN)
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="also tell what every condition says, and show objects"
    )
    verbose = parser.parse_args().verbose
    progress = Progress(sys.stdout)
    lock = threading.Lock()

    def say(message: str) -> None:
        with lock:
            progress.say(message)

    try:
        if not host.is_root():
            # Checked before minutes of building.
            print("the demo runs real pods, and those need root: run it again with sudo", file=sys.stderr)
            return 1
        running = cluster.up(DEMO, progress)
        stage = prepare(running, progress)
        for namespace in sorted({story.namespace for story in STORIES}):
            forget(stage, namespace)
        say("telling seven stories, four of them at once")
        results = tell(replace(stage, tells=everything) if verbose else stage, STORIES, say)
        for story in STORIES:
            if verbose and story.stays:
                show(stage, story)
        wide = ("-o", "wide") if verbose else ()
        print(f"\n$ {' '.join(('kubectl get pj -A', *wide))}\n{stage.kubectl('get', 'pj', '-A', *wide).rstrip()}")
        print(f"\n$ rightpool pools\n{stage.rightpool('pools').rstrip()}")
    except (DevclusterError, StoryFailed) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo: interrupted; `make demo` goes on, `make down` ends the cluster", file=sys.stderr)
        return 130
    failed = {name: result for name, result in results.items() if isinstance(result, Exception)}
    print(f"\n{len(results) - len(failed)} of {len(results)} stories happened, {progress.elapsed:.0f} s in all")
    for name, failure in failed.items():
        print(f"\n{name} did not happen: {failure}", file=sys.stderr)
    if failed:
        print(f"\nthe operator's last lines:\n{logs(stage.kubectl)}", file=sys.stderr)
    print(f"""
The cluster stays up. To look around:
  eval "$(make env)"                 kubectl, helm and rightpool for this cluster
  rightpool ui                       the fleet and its jobs as a page: it says where to open it
  rightpool explain scaling -n research   why a job is where it is
  kubectl -n {SYSTEM} logs deploy/rightpool -f
  make down                          ends it and leaves nothing behind""")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
