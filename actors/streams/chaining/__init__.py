"""The users' interface: streams, whose methods add operators, and the graphs that they end in."""
