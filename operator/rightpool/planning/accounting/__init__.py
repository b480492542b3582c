"""Accounting: chips that are held, what they cost, what moves save, and how far a job is."""
