"""Lots of native values, from and to rows."""

from libc.stdint cimport int64_t

from callboard._inside.sending.values cimport pack, value_of
from callboard.core.memory.node cimport Kind, Node
from callboard.scheduling.flow.values cimport Output, Value, Values
from callboard.streams.programs.program cimport Watermark


cdef Values* lot_of(list rows, Py_ssize_t* at) except? NULL:
    """The rows as native values; null if there are none. Watermarks end here.

    Raises TypeError or ValueError for a row that is no native value, and leaves `at` on it."""
    cdef Output out
    cdef Node node
    cdef Value value
    cdef Values* lot
    out.expect(len(rows))
    at[0] = -1
    try:
        for row in rows:
            at[0] += 1
            if type(row) is int:  # the others by pack()
                out.push_integer(row, 0)
            elif type(row) is float:
                out.push_real(row, 0)
            elif type(row) is not Watermark:
                pack(&node, row)
                value.integer = node.integer
                value.rest = <int64_t>node.second
                value.kind = node.kind
                value.tag = node.tag
                out.take_over(value)
    except BaseException as error:
        lot = out.take()
        if lot != NULL:
            lot.free()
        if isinstance(error, OverflowError):
            raise ValueError(f"{rows[at[0]]} does not fit into the 64 bits of a native integer") from None
        raise
    return out.take()


cdef list rows_of(Values* lot):
    """The values as Python objects; the lot keeps what it holds."""
    cdef list rows = []
    cdef Node node
    cdef const Value* value = lot.begin()
    cdef const Value* end = value + lot.count()
    while value < end:
        if value.kind == Kind.integer and value.tag == 0:
            rows.append(value.integer)
        elif value.kind == Kind.real and value.tag == 0:
            rows.append(value.real)
        else:
            node.kind = value.kind
            node.tag = value.tag
            node.integer = value.integer
            node.second = <void*>value.rest
            rows.append(value_of(&node))
        value += 1
    return rows
