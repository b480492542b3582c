"""`rightpool ui`: what the other commands print, as a page in the browser."""
