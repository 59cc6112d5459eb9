"""The native protocol of channels: a ring, who waits at each side, and waiting for any of many."""
