"""From a trace that the agent has left to the shares of one step."""
