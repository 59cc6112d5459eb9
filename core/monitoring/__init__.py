"""Records of what workers do, for monitoring, and their logs as text."""
