"""Sessions that work at once."""
