"""Programs that handle row by row, and sinks."""
