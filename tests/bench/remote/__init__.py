"""Rows and asks to a system served by another process, compared with bare sockets and HTTP."""
