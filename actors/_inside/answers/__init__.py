"""Answers: futures, and when they fail because it is too late."""
