"""A fault campaign: random faults over a fleet of jobs on a cluster of its own, under the eye of an invariant checker.

    python -m chaos --faults 200 --seed 7

The checker sees nothing but the API server's own event stream. It knows no code of the operator's: what must never
happen is written down anew in `invariants.py`, and a test feeds that with streams in which it does happen.
"""
