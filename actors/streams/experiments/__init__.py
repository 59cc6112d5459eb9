"""Experiments with running graphs: the gain of the whole if one operator were faster."""
