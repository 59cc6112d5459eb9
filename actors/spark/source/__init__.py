"""Partitions to and from servers: `deliver()` and the format `callboard`."""
