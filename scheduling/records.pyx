"""Monitoring records for Python."""

from libc.stdint cimport uint64_t

from callboard.scheduling.cell cimport DispatchRecord, RecordRing
from callboard.scheduling.worker cimport WorkerThread


def read_records(WorkerThread worker, uint64_t since):
    """Return a worker's records from number `since` on, and the number of the next one to come.

    A record is (time, spent, actor, dispatch, messages, queue): a `DispatchRecord` of `core/records.hpp`. Those that
    were overwritten are missing at the front. Any thread may read; it disturbs nobody.
    """
    cdef RecordRing* ring = worker.core.ring
    cdef DispatchRecord record
    cdef list found = []
    if ring == NULL:
        return found, 0
    cdef uint64_t end = ring.written()
    cdef uint64_t number = since
    if end > ring.capacity():
        number = max(number, end - ring.capacity())
    while number < end:
        if ring.read(number, record):
            found.append((record.time, record.spent, record.actor, record.dispatch,
                          record.messages, record.queue))
        else:
            found.clear()  # the writer came past: what stood before is a gap now
        number += 1
    return found, end
