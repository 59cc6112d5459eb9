"""The assignment of rows to windows, and the states of windows."""
