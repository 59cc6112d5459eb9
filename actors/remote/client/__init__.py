"""What a program has of a server elsewhere: connections, refs, stages, published rows."""
