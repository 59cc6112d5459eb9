"""The files on disk: staged rows, the journal of commits, published rows."""
