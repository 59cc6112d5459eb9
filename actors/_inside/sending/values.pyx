"""Native values, between Python objects and nodes."""

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_WRITABLE
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.string cimport memcpy

from callboard.core.asserting cimport holds
from callboard.core.memory.buffer cimport Buffer, DeadBuffers
from callboard.core.memory.node cimport Kind, Node
from callboard.core.sealed cimport maker_key, only_by_runtime

from callboard.core import checks
from callboard.core.text import safe_repr

cdef extern from "Python.h":
    int Py_AddPendingCall(int (*function)(void*) noexcept, void* argument) nogil
    Py_buffer* PyMemoryView_GET_BUFFER(object view)


class Tagged:
    """A native value with the 32-bit tag that native actors see as `message.tag`."""

    __slots__ = ("tag", "value")

    def __init__(self, tag, value):
        self.tag = checks.whole("a tag", tag, 0, 2**32 - 1)
        self.value = value


class NativeRecord:
    """16 bytes by value, such as `struct.pack("<qd", key, value)`; shorter values are padded with zeros."""

    __slots__ = ("data",)

    def __init__(self, data):
        if not isinstance(data, bytes) or len(data) > 16:
            raise ValueError(f"a record must have at most 16 bytes, got {safe_repr(data)}")
        self.data = data.ljust(16, b"\0")

    def __eq__(self, other):
        return isinstance(other, NativeRecord) and self.data == other.data

    def __hash__(self):
        return hash(self.data)

    def __repr__(self):
        return f"NativeRecord({self.data!r})"


# --- values -------------------------------------------------------------------------------------------


cdef int pack(Node* node, object message) except -1:
    """Write a Python object into a node as a native value."""
    node.flags = 0
    node.tag = 0
    node.second = NULL
    if isinstance(message, Tagged):
        node.tag = message.tag
        message = message.value
    if isinstance(message, int):
        if not -2**63 <= message < 2**63:
            raise ValueError(f"{message} does not fit into the 64 bits of a native integer")
        node.kind = Kind.integer
        node.integer = message
    elif isinstance(message, float):
        node.kind = Kind.real
        node.real = message
    elif isinstance(message, NativeRecord):
        node.kind = Kind.record
        data = <bytes>message.data
        memcpy(&node.integer, <const char*>data, 8)
        memcpy(&node.second, <const char*>data + 8, 8)
    else:
        node.first = buffer_of(message)
        node.kind = Kind.buffer
    return 0


cdef object value_of(Node* node):
    """Read a native value as a Python object; the node keeps what it holds."""
    if node.kind == Kind.integer:
        value = node.integer
    elif node.kind == Kind.real:
        value = node.real
    elif node.kind == Kind.record:
        value = NativeRecord((<char*>&node.integer)[:8] + (<char*>&node.second)[:8])
    elif node.kind == Kind.buffer:
        value = from_buffer(<Buffer*>node.first)
    else:
        return <object>node.first
    return Tagged(node.tag, value) if node.tag else value


cdef object take_value(Node* node):
    """Read a native value as a Python object, and let go what the node holds."""
    value = value_of(node)
    if node.kind == Kind.buffer:
        (<Buffer*>node.first).drop()
    return value


# --- buffers ------------------------------------------------------------------------------------------

cdef DeadBuffers dead


cdef void destroy_owned(Buffer* buffer) noexcept nogil:
    """The last use of a Python object's memory is over."""
    if dead.push(buffer):
        Py_AddPendingCall(empty_dead, NULL)


cdef int empty_dead(void* _) noexcept:
    """Let the owners of dead buffers go. Runs with the interpreter."""
    cdef Buffer* buffer = dead.take_all()
    cdef Buffer* following
    while buffer != NULL:
        assert holds(buffer.owner != NULL)
        following = buffer.next
        owner = <object>buffer.owner
        Py_DECREF(owner)
        del buffer
        buffer = following
    return 0


cdef Buffer* buffer_of(object source) except NULL:
    """Share an object's memory. The buffer has one reference, the caller's."""
    cdef Buffer* buffer
    cdef Py_buffer* raw
    empty_dead(NULL)
    if isinstance(source, NativeBuffer):
        buffer = (<NativeBuffer>source).buffer
        buffer.retain()
        return buffer
    if hasattr(source, "__arrow_c_array__"):
        schema, array = source.__arrow_c_array__()
        owner = (source, schema, array)
        buffer = new Buffer()
        buffer.format = b"A"
        buffer.schema = PyCapsule_GetPointer(schema, "arrow_schema")
        buffer.array = PyCapsule_GetPointer(array, "arrow_array")
    else:
        try:
            view = memoryview(source)
        except TypeError:
            raise TypeError(
                f"a native actor expected int, float, NativeRecord, or an object with memory, got {safe_repr(source)}"
            ) from None
        if not view.c_contiguous:
            raise ValueError(f"a native actor expected C-contiguous memory, got {safe_repr(source)}")
        owner = (source, view)
        raw = PyMemoryView_GET_BUFFER(view)
        buffer = new Buffer()
        buffer.data = raw.buf
        buffer.size = raw.len
        buffer.item_size = raw.itemsize
        buffer.format = b"B" if raw.format == NULL else raw.format[0]
        buffer.readonly = raw.readonly
    Py_INCREF(owner)
    buffer.owner = <void*>owner
    buffer.destroy = destroy_owned
    return buffer


cdef object from_buffer(Buffer* buffer):
    """Return the Python object whose memory this is, or a NativeBuffer on our own memory."""
    cdef NativeBuffer native
    assert holds(buffer != NULL)
    if buffer.owner != NULL:
        return (<tuple><object>buffer.owner)[0]
    native = NativeBuffer.__new__(NativeBuffer, maker_key())
    buffer.retain()
    native.buffer = buffer
    return native


cdef class NativeBuffer:
    """Memory that a native actor allocated, for NumPy and others by the buffer protocol."""

    def __cinit__(self, key=None):
        only_by_runtime(key, self, "native buffers come from native actors")

    def __dealloc__(self):
        if self.buffer != NULL:
            self.buffer.drop()

    def __len__(self):
        assert holds(self.buffer.item_size > 0)
        return self.buffer.size // self.buffer.item_size

    def __getbuffer__(self, Py_buffer* view, int flags):
        if flags & PyBUF_WRITABLE and self.buffer.readonly:
            raise BufferError("this buffer is read-only")
        self.format[0] = self.buffer.format
        self.format[1] = 0
        self.shape[0] = self.buffer.size // self.buffer.item_size
        self.strides[0] = self.buffer.item_size
        view.buf = self.buffer.data
        view.obj = self
        view.len = self.buffer.size
        view.itemsize = self.buffer.item_size
        view.readonly = self.buffer.readonly
        view.format = NULL
        if flags & PyBUF_FORMAT:
            view.format = self.format
        view.ndim = 1
        view.shape = self.shape
        view.strides = self.strides
        view.suboffsets = NULL
        view.internal = NULL
