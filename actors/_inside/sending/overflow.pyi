OVERFLOWS: tuple[str, ...]
