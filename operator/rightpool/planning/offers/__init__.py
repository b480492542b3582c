"""Where a job could be, what that would do and cost, and which offer it would take."""
