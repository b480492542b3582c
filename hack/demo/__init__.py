"""The demo: four stories on a real Kubernetes, told from the objects themselves. The end-to-end tests run the same."""
