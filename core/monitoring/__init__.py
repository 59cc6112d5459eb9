"""Records of workers' dispatches, and distributions of times, for monitoring."""
