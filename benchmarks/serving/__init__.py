"""How far latency and throughput of serving are from simulations, a real server and published results."""
