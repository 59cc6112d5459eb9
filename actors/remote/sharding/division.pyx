"""Rows divided among shards, by the hashes of their keys."""

from libc.stdint cimport int64_t, uint8_t, uint64_t


def places_of_shards(const uint8_t[::1] hashes, Py_ssize_t shards):
    """Return for each shard the numbers of its rows, in their order, as integers of 64 bits.

    The shard of a hash is its remainder.
    """
    cdef Py_ssize_t count = hashes.size // 8
    if not count:
        return [b""] * shards
    ends = bytearray(8 * shards)
    order = bytearray(8 * count)
    cdef uint8_t[::1] ends_view = ends, order_view = order
    cdef const uint64_t* of_rows = <const uint64_t*>&hashes[0]
    cdef int64_t* end = <int64_t*>&ends_view[0]
    cdef int64_t* rows = <int64_t*>&order_view[0]
    cdef int64_t before = 0, size
    cdef Py_ssize_t at, shard
    with nogil:
        for at in range(count):
            end[of_rows[at] % shards] += 1
        for shard in range(shards):  # where each shard's rows begin; the loop below moves it on
            size, end[shard] = end[shard], before
            before += size
        for at in range(count):
            shard = of_rows[at] % shards
            rows[end[shard]] = at
            end[shard] += 1
    bounds = [0, *[8 * end[shard] for shard in range(shards)]]
    return [memoryview(order)[bounds[shard] : bounds[shard + 1]] for shard in range(shards)]
