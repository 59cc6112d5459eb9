"""Running graphs, in an actor system or on the calling thread."""
