"""The protocol between client and server, without I/O."""
