"""Queries 1, 2, 3, 4 and 15 of TPCx-BB on streams; README.md says how to run them."""
