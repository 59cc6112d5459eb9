"""The users' interface: streams, whose methods add operators, and graphs."""
