"""Answers: futures, when they fail because it is too late, and who waits for whom."""
