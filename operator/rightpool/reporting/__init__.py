"""What is said: conditions, status, Events and texts, and when they are worth a write. Pure."""
