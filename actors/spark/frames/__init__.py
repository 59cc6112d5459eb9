"""Frames, batches and rows: their conversion, their schemas, and their partitions by key."""
