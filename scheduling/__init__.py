"""Workers and policies: it imports only `callboard.core` and `callboard.mailbox`."""
