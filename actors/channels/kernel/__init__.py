"""The native protocol of channels: a ring, waits at each side, and waits for any of several."""
