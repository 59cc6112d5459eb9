"""A program's access to a server elsewhere: connections, refs, uploads, published rows."""
