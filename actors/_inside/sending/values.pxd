from callboard.core.memory.buffer cimport Buffer
from callboard.core.memory.node cimport Node


cdef class NativeBuffer:
    # A Buffer as Python sees it: by the buffer protocol.
    cdef Buffer* buffer
    cdef Py_ssize_t shape[1]
    cdef Py_ssize_t strides[1]
    cdef char format[2]


cdef Buffer* buffer_of(object source) except NULL
cdef object from_buffer(Buffer* buffer)
cdef int pack(Node* node, object message) except -1
cdef object value_of(Node* node)
cdef object take_value(Node* node)
