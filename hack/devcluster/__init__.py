"""A real Kubernetes on one machine, without Docker: for the tests, the benchmarks and the demo.

The control plane, one container node and kwok are built from Go modules into a per-user cache. Each cluster lives in a
separate network namespace, so two of them never share a port, a firewall rule or a route, and removing one does not
affect the other. Start with `python -m devcluster --help`; `devcluster.cluster` is the same for Python.
"""
