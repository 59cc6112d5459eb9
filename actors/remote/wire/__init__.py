"""Values, rows and record batches as bytes, and bytes as messages."""
