"""I/O out: the only room that talks to the API server."""
