"""The profiler sidecar: receives the reports of the in-process agents, and serves metrics by the contract."""
