"""What to do, and how to do it without harm: candidates, gates, decisions, the migration state machine. Pure."""
