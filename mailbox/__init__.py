"""Every structure that messages wait in: it imports only `callboard.core`."""
