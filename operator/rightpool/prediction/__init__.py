"""What a job would do on another pool or at another size: samples/s with an interval. Pure."""
