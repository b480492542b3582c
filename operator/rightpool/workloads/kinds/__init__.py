"""Kinds of children: one module each, and the registry that names them."""
