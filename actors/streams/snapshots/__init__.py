"""Snapshots: the state of a run as bytes, in files, and restored into a run."""
