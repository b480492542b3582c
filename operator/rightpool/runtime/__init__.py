"""The loop: store, planner, executor, status."""
