"""What a workload does, how far it is, and what a move has brought it."""
