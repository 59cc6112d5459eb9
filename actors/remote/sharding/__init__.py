"""Several servers used as one: each holds the rows of its keys.

The layers: `key_hash`, the hashes of keys and of columns of keys; `keys`, the key of a row, and
record batches divided by it; `ref` and `connection`, a program's access to the servers.
"""
