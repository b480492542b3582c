"""I/O in: samples from Prometheus in bulk, or from the sidecars directly."""
