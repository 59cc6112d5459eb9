"""Runs of nets: their actors, and a run as its user sees it."""
