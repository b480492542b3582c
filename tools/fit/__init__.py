"""Makes the data file of the chip model from published measurements."""
