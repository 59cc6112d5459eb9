"""The lowest floor, which all others import: it imports nothing of callboard."""
