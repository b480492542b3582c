"""Generators of files of this repository, and the runner of its tests. Not part of the product."""
