"""Whether what users see is so: a fleet in known states on a real API server, and what every command says of it."""
