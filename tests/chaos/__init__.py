"""A fault campaign: random faults in a fleet of jobs on a separate cluster, observed by an invariant checker.

    python -m tests.chaos --faults 200 --seed 7

The checker reads only the API server's watch stream and imports no code of the operator's planning. The invariants are
stated independently in `invariants.py`; a test feeds them streams in which they are violated.
"""
