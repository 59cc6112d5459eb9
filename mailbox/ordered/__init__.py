"""What the rounds of a stream wait in: rings, worklists, the hybrid queue, the reorder buffer."""
