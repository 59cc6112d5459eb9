"""Rows on their way into actors and graphs: batches of them, and their times."""
