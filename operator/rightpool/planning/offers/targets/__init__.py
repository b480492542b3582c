"""Targets: what users want of jobs beside the objective. A new one is a module here, and its row in registry.py."""
