"""Arrow batches: their columns, their order, and programs that take them in order of time."""
