"""Sending: refs, messages as values, admission to mailboxes, and the end of what is not handled."""
