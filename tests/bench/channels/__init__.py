"""Channels between tasks, each benchmark written once for callboard and for other libraries."""
