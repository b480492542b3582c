"""What a job costs, and what it saves."""
