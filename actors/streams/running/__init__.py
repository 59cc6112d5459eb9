"""Graphs at work, in an actor system or on the calling thread."""
