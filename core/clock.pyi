def monotonic_ns() -> int:
    """Return the monotonic clock in nanoseconds; its zero is arbitrary."""
