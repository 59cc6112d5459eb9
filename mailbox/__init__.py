"""The queues in which messages wait: it imports only `callboard.core`."""
