"""What is written to the cluster."""
