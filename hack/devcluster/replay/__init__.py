"""Simulates the profiler sidecar of every simulated pod, on the pod's own address.

Test equipment: the operator has no code for it. Simulated nodes run no processes, so one process answers for all of
their pods, in a network namespace where their addresses are local. It watches pods and nodes, looks up what the pod's
workload does on the node's chips in a table of published measurements (`data/replay.csv`, every row with its source),
and serves the pages of the sidecar's contract.

Annotations of a pod (all optional but the first; durations as in 500ms, 2s, 5m, 1h):

    simulation.rightpool.dev/workload          which rows of the table it is: resnet50, mpt-1b, bert
    simulation.rightpool.dev/warm-up           how long it runs at a quarter of its speed first; absent: 15s
    simulation.rightpool.dev/checkpoint-delay  how long a requested save takes; absent: 2s; `never`: it never completes
    simulation.rightpool.dev/checkpoint-every  time between its own saves; absent: 5m, where requested saves come
    simulation.rightpool.dev/memory            GiB used on each chip instead of the table's
    simulation.rightpool.dev/trace             `true`: exports all shares of its step, as after a trace; absent:
                                               only the wait for input, since the rest is not published
    simulation.rightpool.dev/throughput, throttle, link, silent, lose    as below, for this pod alone

Faults of a pool are set by the ConfigMap `simulation` in `kube-system`, one key a pool (its name as in the
label `rightpool.dev/pool` or `simulation.rightpool.dev/pool`; `all`: every pool), the value JSON or YAML:

    a10g: '{"throughput": 0.5, "throttle": 0.3}'

    throughput  factor on samples/s (0.5: half of what is published); one slow pod slows its whole job
    throttle    what the chips report as share of time throttled; slows nothing by itself
    link        factor on the links' speed: 0.25 makes exposed communication take four times as long
    silent      true: connections are accepted and closed without an answer, like those of a dead sidecar
    lose        a pod's name, `namespace/name`, or a list of them: it stops answering and its status becomes Failed,
                once; on a pod's annotation `true`

Deleting the key or the ConfigMap ends the fault. A lost pod stays lost: its Job creates another one.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

# The cluster starts this with hack/ alone on the path; the contract is in operator/.
if find_spec("rightpool") is None:
    sys.path.append(str(Path(__file__).resolve().parents[3] / "operator"))
