"""Measurements of the product's own speed and accuracy: `python -m benchmarks.<name>`."""
