"""The profiler sidecar: collects what the in-process agent says, and serves it by the contract."""
