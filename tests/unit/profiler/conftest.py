"""Makes the agent importable: it is no package of the product, it is copied into the user's container."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3] / "profiler_sidecar" / "agent"))
