"""What the runtime itself costs: asks, idleness, the interpreter token, monitoring.

Modules have the same `run(host, n)` as those of `savina`; most are for callboard alone.
"""
