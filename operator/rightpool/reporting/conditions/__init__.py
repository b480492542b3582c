"""Conditions of a ProfiledJob: one module each for those that belong together."""
