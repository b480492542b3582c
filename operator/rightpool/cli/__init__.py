"""The command line: operator, explain, pools, top."""
