"""Memory: nodes and their pools, stacks, slabs, buffers, an index of hashes."""
