"""Receiving: dispatches, coroutines, answers that come later."""
