"""Frames, batches and rows: what is in them, and which are beside each other."""
