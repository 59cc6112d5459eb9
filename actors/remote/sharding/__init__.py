"""Several servers as one: each has the rows of its keys.

The layers: `key_runs`, what is hashed of a key; `key_hash` and `column_hash`, keys and columns as
hashes; `division`, rows by their hashes; `keys`, which key a row has; `columns`, record batches in
parts; `ref`, `stage` and `connection`, what a program has of the servers.
"""
