"""What threads need of each other: sleep and wake-ups, locks, the interpreter, the cores."""
