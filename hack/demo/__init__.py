"""The demo: seven stories on a real Kubernetes, reported from its objects. The end-to-end tests run the same."""
