"""The elastic thread level: the number of workers of a system, adapted while it runs."""
