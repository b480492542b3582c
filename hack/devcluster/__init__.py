"""A real Kubernetes on one machine, without Docker: for the tests, the benchmarks and the demo.

The control plane, one container node and kwok are built from Go modules into a per-user cache. Each cluster lives in a
network namespace of its own, so two of them never share a port, a firewall rule or a route, and taking one down cannot
hurt the other. `python -m devcluster --help` is the way in; `devcluster.cluster` is the same for Python.
"""
