"""The site of docs/: pages that are made from the code at build time, and what the build needs."""
