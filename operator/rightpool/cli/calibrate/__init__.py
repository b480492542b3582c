"""`rightpool calibrate`: measures what the chips of a pool can do, by a Job on one of its nodes."""
