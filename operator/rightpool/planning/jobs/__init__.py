"""A job as it is wanted, stored and seen, and the fleet of them."""
