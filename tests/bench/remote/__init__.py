"""What goes between processes: rows and asks for a served system, beside bare sockets and HTTP."""
