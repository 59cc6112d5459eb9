"""The elastic thread level: how many workers a system runs, found while it runs."""
