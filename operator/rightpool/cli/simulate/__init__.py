"""`rightpool simulate`: a history of jobs played again, with other pools, prices or policy."""
