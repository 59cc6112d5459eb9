"""Rows sent to actors and graphs: their batches, and their times."""
