"""Receiving: dispatches, system messages, coroutines."""
