"""Programs as people write them, each with what is true of it counted by itself, to try the agent on."""
