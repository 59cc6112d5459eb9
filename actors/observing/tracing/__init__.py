"""Traces of a system, and the messages between its actors that they have seen."""
