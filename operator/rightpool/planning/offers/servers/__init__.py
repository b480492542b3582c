"""How many replicas of a server are needed where, and what they cost."""
