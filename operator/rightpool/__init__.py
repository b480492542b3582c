"""Rightpool: hardware-aware placement of ML jobs on Kubernetes."""
