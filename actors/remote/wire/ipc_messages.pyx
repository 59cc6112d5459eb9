"""Finds the messages of a stream in Arrow's IPC format; the stream's writer is not trusted.

pyarrow takes the lengths that it finds for granted, and ends the process where they are wrong.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memcpy

from callboard.remote.errors import CodecError

cdef extern from "callboard/remote/wire/ipc_messages.hpp" namespace "callboard" nogil:
    cdef cppclass IpcMessage:
        int64_t kind, body
        bint is_compressed, leads_out
    IpcMessage read_ipc_message(const unsigned char* data, int64_t size)

# MessageHeader of Message.fbs.
DICTIONARY, BATCH = 2, 3
# Before a message's metadata: a mark, and how long they are. A stream ends with a length of 0.
cdef uint32_t CONTINUATION = 0xFFFFFFFF
cdef Py_ssize_t PREFIX = 8


def messages_in(const unsigned char[::1] data not None, Py_ssize_t at=0):
    """Return of each message of a stream, from `at` on, where it begins, how long it is, and its kind.

    Raises CodecError where it would lead beyond the data, and for compressed buffers, as what they
    become could be of any size.
    """
    cdef Py_ssize_t end = data.shape[0], begin
    cdef uint32_t mark
    cdef int32_t size
    cdef IpcMessage said
    found = []
    while at < end:
        if end - at < PREFIX:
            raise CodecError(f"{end - at} bytes at {at}, and a message begins with {PREFIX}")
        memcpy(&mark, &data[at], sizeof(mark))
        memcpy(&size, &data[at + 4], sizeof(size))
        if mark != CONTINUATION:
            raise CodecError(f"no message at {at}")
        if size == 0:
            break
        begin = at + PREFIX
        if not 8 <= size <= end - begin:
            raise CodecError(f"a message's metadata of {size} bytes, and {end - begin} are there")
        said = read_ipc_message(&data[begin], size)
        if said.leads_out:
            raise CodecError(f"a message's metadata at {at} lead out of their {size} bytes")
        if not 0 <= said.body <= end - begin - size:
            raise CodecError(f"a message's body of {said.body} bytes, and {end - begin - size} are there")
        if said.is_compressed:
            raise CodecError("compressed record batches are not taken")
        found.append((at, PREFIX + size + said.body, said.kind))
        at = begin + size + said.body
    return found
