"""Staging: each row counts once, though tasks fail, repeat and race, and servers crash.

`entries` and `persistent` are what a server offers. `stager`, an actor that has the store, takes
rows and commits; `targets` says whose the rows are, and `applier` hands them over. `service` is
all of it for a server, with the reads of published rows.
"""
