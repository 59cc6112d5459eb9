"""Tools for threads: sleep and wake-ups, locks, the interpreter, the cores."""
