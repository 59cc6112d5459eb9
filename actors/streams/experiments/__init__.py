"""Experiments with runs at work: what the whole would gain if one operator were faster."""
