"""The protocol between client and server, without input and output."""
