"""What `helm test` runs in the operator's image: standard library only, with the operator's own rights."""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
GROUP = "/apis/rightpool.dev/v1alpha1"
PATIENCE = 90.0


def api(path: str) -> Any:
    request = urllib.request.Request(
        f"https://kubernetes.default.svc{path}", headers={"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}"}
    )
    authority = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=10, context=authority) as answer:
        return json.load(answer)


def kinds() -> str:
    paths = [f"{GROUP}/acceleratorpools"]
    watched = [name for name in os.environ["WATCH_NAMESPACES"].split(",") if name]
    paths += [f"{GROUP}/namespaces/{name}/profiledjobs" for name in watched] or [f"{GROUP}/profiledjobs"]
    for path in paths:
        api(f"{path}?limit=1")
    return "the API server serves ProfiledJobs and AcceleratorPools"


def leader() -> str:
    spec = api(f"/apis/coordination.k8s.io/v1/namespaces/{os.environ['NAMESPACE']}/leases/{os.environ['LEASE']}")[
        "spec"
    ]
    age = (datetime.now(UTC) - datetime.fromisoformat(spec["renewTime"])).total_seconds()
    if not spec.get("holderIdentity") or age > 2 * spec["leaseDurationSeconds"]:
        raise ValueError(f"no leader: the Lease was last renewed {age:.0f} s ago by {spec.get('holderIdentity')!r}")
    return f"{spec['holderIdentity']} leads"


def metrics() -> str:
    with urllib.request.urlopen(os.environ["METRICS_URL"], timeout=10) as answer:
        page = answer.read().decode()
    if "rightpool_operator_leader" not in page:
        raise ValueError(f"{os.environ['METRICS_URL']} answers, and not with the operator's metrics")
    return "the operator's metrics are served"


deadline = time.monotonic() + PATIENCE
for check in (kinds, leader, metrics):
    while True:
        try:
            print(f"ok: {check()}", flush=True)
            break
        except (OSError, ValueError, KeyError) as error:
            answer = error.read().decode() if isinstance(error, urllib.error.HTTPError) else error
            if time.monotonic() > deadline:
                sys.exit(f"{check.__name__}: {answer}")
            time.sleep(2)
