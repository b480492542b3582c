"""The command line, and the page in the browser."""
