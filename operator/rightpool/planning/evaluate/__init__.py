"""Everything that a job could do, as data: placements, gates, scores."""
