"""Memory: nodes and their pools, stacks, slabs, buffers, and a hash table of slots."""
