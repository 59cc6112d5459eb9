"""Servers: the actors and graphs of a system, served to other processes."""
