"""Stateless operators in worker processes, where each process runs Python on a core of its own."""
