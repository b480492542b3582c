"""What a fleet's planner is worth, in the form of Sia's published simulator."""
