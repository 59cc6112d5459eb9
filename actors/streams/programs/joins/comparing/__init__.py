"""Comparing columns of numbers, by vector instructions."""
