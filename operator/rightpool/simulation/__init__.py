"""A fleet in virtual time: simulated jobs drive the operator's own planning and its state machine. Pure."""
