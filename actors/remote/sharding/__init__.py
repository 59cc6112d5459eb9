"""Several servers as one: each has the rows of its keys.

The layers: `key_runs`, the bytes of a key that are hashed; `key_hash` and `column_hash`, keys and
columns as hashes. Above them `division`, rows by their hashes; `keys`, the key of a row; `columns`,
record batches in parts. On top `ref`, `upload` and `connection`, a program's access to the servers.
"""
