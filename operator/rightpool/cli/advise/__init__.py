"""`rightpool advise`: to which partition of a Slurm cluster a measured program belongs."""
