"""Reads monitoring records out of a worker's ring, and encodes them as packets of a trace."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from callboard.core.monitoring.records cimport (
    DispatchRecord, RecordRing, record_exit, record_lost, record_sent, record_suspension, record_taken, record_use,
    record_wait,
)
from callboard.scheduling.worker cimport WorkerThread
from callboard.scheduling.worker_core cimport Worker

cdef extern from "callboard/core/monitoring/recorder.hpp" namespace "callboard" nogil:
    pass

cdef extern from "callboard/scheduling/tracing/track_events.hpp" namespace "callboard" nogil:
    cppclass string_view "std::string_view":
        string_view()
        string_view(const char* text, size_t size)

    cppclass TrackEvents:
        TrackEvents(uint32_t sequence)
        void begin_process(int64_t pid, string_view name, int64_t realtime, int64_t monotonic, int64_t boottime)
        void begin_worker(int64_t pid, int64_t tid, string_view name, int64_t now)
        bint wants_name(uint64_t number)
        void give_name(uint64_t number, string_view name)
        bint wants_mailbox(const DispatchRecord& record)
        void describe_mailbox(uint64_t actor, string_view name)
        void add(const DispatchRecord& record)
        void add_wait(const DispatchRecord& record)
        void add_message(int64_t time, uint64_t arrow, bint ends, string_view name)
        void add_instant(int64_t time, string_view name)
        void clear()
        const char* data()
        size_t size()

RECORD_SIZE = sizeof(DispatchRecord)


def records_written(WorkerThread worker):
    """Return the number of records that a worker has written."""
    cdef Worker* core = worker.core
    return core.recorder.ring.written() if core.recorder != NULL else 0


def take_records(WorkerThread worker, uint64_t since):
    """Return a worker's records from number `since` on, as they are in memory, the number of the next record,
    and the number of records that were overwritten before they were read.

    Any thread may read, without disturbing others.
    """
    cdef Worker* core = worker.core
    if core.recorder == NULL:
        return b"", since, 0
    cdef RecordRing* ring = &core.recorder.ring
    cdef uint64_t end = ring.written()
    cdef uint64_t first = max(since, end - ring.capacity() if end > ring.capacity() else 0)
    cdef uint64_t number
    cdef DispatchRecord record
    cdef size_t length = 0
    if first >= end:
        return b"", end, 0
    cdef bytes taken = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>((end - first) * sizeof(DispatchRecord)))
    cdef char* to = PyBytes_AS_STRING(taken)
    for number in range(first, end):
        if not ring.read(number, record):
            length = 0  # the writer has overtaken: the older records are lost
            first = number + 1
            continue
        memcpy(to + length, &record, sizeof(DispatchRecord))
        length += sizeof(DispatchRecord)
    return taken[:length], end, first - since


def taken_from(WorkerThread worker, uint64_t since):
    """Return the sampled messages that a worker took out of queues, from record `since` on, and the number of the next
    record. A message is the number of its sender, 0 if that is not an actor, and that of its receiver.
    """
    cdef Worker* core = worker.core
    cdef DispatchRecord record
    cdef RecordRing* ring
    cdef uint64_t end, number
    cdef list found = []
    if core.recorder == NULL:
        return found, since
    ring = &core.recorder.ring
    end = ring.written()
    for number in range(max(since, end - ring.capacity() if end > ring.capacity() else 0), end):
        if ring.read(number, record) and record.kind == record_taken:
            found.append((record.created, record.actor))
    return found, end


cdef bytes message_event(char kind, bytes other):
    """Return a trace's name for an event of a sampled message, whose other end is an actor of this name."""
    if kind == record_sent:
        return b"to " + other
    return (b"from " if kind == record_taken else b"dead letter from ") + other


cdef string_view view_of(bytes text) noexcept:
    """Return a view of a text that the caller keeps."""
    return string_view(PyBytes_AS_STRING(text), <size_t>len(text))


cdef class TrackEncoder:
    """The packets of one track of a trace, in the format of Perfetto. One thread at a time."""

    cdef TrackEvents* events

    def __cinit__(self, uint32_t sequence):
        self.events = new TrackEvents(sequence)

    def __dealloc__(self):
        del self.events

    def begin_process(self, int64_t pid, str name, int64_t realtime, int64_t monotonic, int64_t boottime):
        """Begin a trace with the name of the process and the times of its clocks, in nanoseconds."""
        cdef bytes text = name.encode()
        self.events.begin_process(pid, view_of(text), realtime, monotonic, boottime)

    def begin_worker(self, int64_t pid, int64_t tid, str name, int64_t now):
        """Begin a worker's track. `tid` is its thread's number, or 0; `now` is in monotonic ns."""
        cdef bytes text = name.encode()
        self.events.begin_worker(pid, tid, view_of(text), now)

    def add(self, bytes records, dict names):
        """Add records from `take_records()`. `names` has the names of actors and operators by number."""
        cdef DispatchRecord record
        cdef const char* at = PyBytes_AS_STRING(records)
        cdef size_t i
        cdef bytes name
        for i in range(<size_t>len(records) // sizeof(DispatchRecord)):
            memcpy(&record, at + i * sizeof(DispatchRecord), sizeof(DispatchRecord))
            if record.kind == record_wait or record.kind == record_suspension:
                self.events.add_wait(record)
            elif record.kind == record_sent or record.kind == record_taken or record.kind == record_lost:
                self.add_message(record, names)
            elif record.kind != record_use and record.kind != record_exit:
                if self.events.wants_name(record.actor):
                    name = names.get(record.actor, b"(ended)")
                    self.events.give_name(record.actor, view_of(name))
                if self.events.wants_mailbox(record):
                    name = b"queue of " + <bytes>names.get(record.actor, b"(ended)")
                    self.events.describe_mailbox(record.actor, view_of(name))
                self.events.add(record)

    cdef int add_message(self, const DispatchRecord& record, dict names) except -1:
        cdef bytes name = message_event(record.kind, <bytes>names.get(record.created, b"(ended)"))
        if record.kind == record_lost:
            self.events.add_message(record.time, 0, False, view_of(name))
        elif record.dispatch != 0:
            self.events.add_message(record.time, record.dispatch, record.kind == record_taken, view_of(name))
        return 0

    def add_instant(self, int64_t time, str name):
        """Add an event without duration, at a moment in monotonic ns."""
        cdef bytes text = name.encode(errors="replace")
        self.events.add_instant(time, view_of(text))

    def take(self):
        """Return the bytes that were added since the last call."""
        cdef bytes packets = self.events.data()[:self.events.size()]
        self.events.clear()
        return packets
