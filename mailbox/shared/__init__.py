"""Queues in memory that processes share."""
