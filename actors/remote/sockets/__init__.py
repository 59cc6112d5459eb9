"""Sockets and addresses, and the threads that read and write them."""
