"""Answers: futures, their deadlines, and the graph of waiting actors."""
