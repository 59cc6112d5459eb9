"""Summaries that one stream feeds, or several at once."""
