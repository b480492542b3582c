"""All tests as parts in lanes: `python -m tools.suite [PART…]`. Lanes run side by side, since tests mostly wait."""
