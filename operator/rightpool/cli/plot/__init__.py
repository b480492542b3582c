"""`rightpool explain --plot`: an explanation as a picture."""
