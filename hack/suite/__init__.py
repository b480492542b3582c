"""All tests as parts in lanes: `python -m suite [PART…]`. Lanes run side by side, because tests mostly wait."""
