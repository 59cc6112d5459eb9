"""Sending: refs, native values, and what happens where there is no room."""
