"""Sending: refs, messages as values, admission to mailboxes, and messages that are not handled."""
