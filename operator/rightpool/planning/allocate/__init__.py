"""Who gets which chips."""
