"""What is read from the cluster and from telemetry."""
