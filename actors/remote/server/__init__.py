"""Serving the actors and graphs of a system."""
