"""Queues for the rounds of a stream: rings, worklists, the hybrid queue, the reorder buffer."""
