"""Programs with several inputs, and the order of their rows."""
