"""What was measured, and what it is worth: pace, progress, forecast, promise, verdict."""
