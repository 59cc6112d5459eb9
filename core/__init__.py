"""The lowest layer, which all others import. It imports nothing of callboard."""
