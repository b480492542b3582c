"""The site of docs/: pages that are generated when the site is built, and the build's hooks."""
