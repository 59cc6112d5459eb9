"""A worker's log: its records as lines of text."""

from libcpp.vector cimport vector

from callboard.core.monitoring.records cimport (
    DispatchRecord, record_exit, record_lost, record_sent, record_stage, record_suspension, record_taken, record_use,
    record_wait,
)

cdef extern from "callboard/core/monitoring/log_text.hpp" namespace "callboard" nogil:
    cppclass string_view "std::string_view":
        string_view(const char* text, size_t size)

    cppclass LogText:
        void add_dispatch(const DispatchRecord& record, const vector[DispatchRecord]& uses, string_view path)
        void add_wait(const DispatchRecord& record, uint32_t worker)
        void add_suspension(const DispatchRecord& record, uint32_t worker)
        void add_exit(const DispatchRecord& record, uint32_t worker)
        void clear()
        const char* data()
        size_t size()


cdef tuple lines_of(RecordRing& ring, uint32_t worker, uint64_t since, dict paths):
    """Return what `WorkerThread.read_log()` does."""
    cdef LogText log
    cdef vector[DispatchRecord] uses
    cdef DispatchRecord record
    cdef uint64_t end = ring.written()
    cdef uint64_t first = max(since, end - ring.capacity() if end > ring.capacity() else 0)
    cdef uint64_t number
    for number in range(first, end):
        if not ring.read(number, record):
            log.clear()  # the writer came past: the older records are a gap now
            uses.clear()
            first = number + 1
        elif record.kind == record_use:
            uses.push_back(record)
        elif record.kind not in (record_stage, record_sent, record_taken, record_lost):
            add_line(log, record, worker, uses, paths)
            uses.clear()
    return log.data()[:log.size()], end, first - since


cdef int add_line(
    LogText& log, const DispatchRecord& record, uint32_t worker, const vector[DispatchRecord]& uses, dict paths
) except -1:
    if record.kind == record_wait:
        log.add_wait(record, worker)
    elif record.kind == record_suspension:
        log.add_suspension(record, worker)
    elif record.kind == record_exit:
        log.add_exit(record, worker)
    else:
        path = <bytes>paths.get(record.actor, b"(ended)")
        log.add_dispatch(record, uses, string_view(<const char*>path, <size_t>len(path)))
    return 0
