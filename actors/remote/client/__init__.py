"""A program's access to a server elsewhere: connections, refs, stages, published rows."""
