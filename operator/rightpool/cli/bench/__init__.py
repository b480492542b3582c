"""`rightpool bench`: what a program does on this machine, and how two such runs compare. No cluster is asked."""
