"""Arrow batches: their columns, their order, programs that take them in time."""
