"""The worker processes of a system, where each runs Python on a core of its own."""
