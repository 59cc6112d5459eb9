"""Nets, each benchmark also as tasks, threads, coroutines or plain calls that do the same.

Modules have `run(n, **options)` and hand back a result with what came out and what must.
"""
