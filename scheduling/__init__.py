"""Workers and policies. This layer imports only `callboard.core` and `callboard.mailbox`."""
