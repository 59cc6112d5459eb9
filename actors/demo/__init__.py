"""A small system to try the tools on: `callboard demo`."""
