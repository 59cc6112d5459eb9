"""Graphs at work in an actor system."""
