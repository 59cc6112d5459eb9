"""The queues in which messages wait. This layer imports only `callboard.core`."""
