"""One module a source: which of its series gives which field, at which quality. `registry` lists them."""
