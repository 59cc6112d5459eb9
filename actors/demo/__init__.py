"""A small system to look at: `callboard demo`."""
