"""Which rows are in which windows, and the states of windows."""
