"""What a job would do on another pool or at another size: throughput with an interval. Pure."""
