"""Rows that count once, though tasks fail, repeat and race, and servers crash.

The layers, each importing only those before it: `messages`, what client and server say; `parts`,
staged rows in memory and in files; `journal`, what is on disk for good; `store`, the rules of both;
`persistent` and `targets`, who gets the rows, and `applier`, which gives them; `stager`, an actor
that has the store; `parcels` and `writer`, the client's side.
"""
