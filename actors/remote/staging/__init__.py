"""Rows that count once, though tasks fail, repeat and race, and servers crash.

The layers, each importing only those before it: `messages` and `publishing`, what client and server
say; `parts`, staged rows in memory and in files; `outbox`, published rows until they are on disk;
`database` and `journal`, what is there for good; `backlog`, `store` and `publications`, the rules
of these; `persistent` and `targets`, who gets the rows, and `applier`, which gives them; `stager`,
an actor that has the store, and `librarian`, one that reads what was published; `parcels`, `writer`
and `published`, the client's side.
"""
