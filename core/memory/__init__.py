"""Memory: nodes and their pools, stacks, slabs, buffers, epochs, an index of hashes."""
