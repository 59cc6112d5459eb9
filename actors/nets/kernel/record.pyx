"""Records in a net: a shape, which many records share, and the values in its order."""

cimport cython
from cpython.dict cimport PyDict_Next
from cpython.long cimport PyLong_CheckExact
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_New, PyTuple_SET_ITEM

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import iscoroutine, isgenerator
from operator import index

from callboard.core.text import safe_repr
from callboard.nets.errors import RecordError
from callboard.nets.terms.labels import is_binding, is_tag, name_of, text_of, text_of_type

cdef extern from "Python.h":
    ctypedef struct PyTupleObject:
        PyObject** ob_item


cdef frozenset _PLAIN = frozenset((bool, bytes, float, int, list, str, tuple))  # values that are not records
cdef object one = 1
cdef object zero = 0


@cython.final
cdef class Shape:
    """The labels of a record, in the order of its values."""

    def __init__(self, object variant):
        self.labels = tuple(sorted(variant))
        self.variant = variant
        self.slots = {label: slot for slot, label in enumerate(self.labels)}

    def __repr__(self):
        return text_of(self.variant)


@cython.final
cdef class Shapes:
    """All shapes of a run: there is one for each set of labels."""

    def __cinit__(self):
        self.known = {}

    cdef Shape of(self, object variant):
        found = self.known.get(variant)
        if found is None:
            found = self.known[variant] = Shape(variant)
        return <Shape>found

    def of_labels(self, variant):
        """Return the shape of these labels, a frozenset."""
        return self.of(variant)


@cython.final
@cython.freelist(256)
cdef class Lineage:
    """The descendants of one record, counted until none is left.

    A record that enters an ordered net begins one. The records that come of it are in it, and leave the net in the
    order of the lineages. If boxes run elsewhere, a record that enters the run begins one, too.
    """


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class MovingRecord:
    """A record on its way.

    The garbage collector does not see it. The executor and entities have it, and are cleared at the end of the run.
    """

    def as_dict(self):
        """Return the values by their labels."""
        return dict(zip(self.shape.labels, self.values))

    @property
    def asked(self):
        """The ask that this record is a part of the answer to, or None."""
        cdef Lineage lineage = self.lineage
        if lineage is None:
            return None
        while lineage.parent is not None:
            lineage = lineage.parent
        return lineage.asked

    def become(self, Shapes shapes, dict values):
        """Give it other labels and values."""
        self.shape = shapes.of(frozenset(values))
        self.values = tuple([values[label] for label in self.shape.labels])

    def __repr__(self):
        return safe_repr(self.as_dict())


cdef MovingRecord new_record(Shape shape, tuple values, Lineage lineage):
    cdef MovingRecord record = MovingRecord.__new__(MovingRecord)
    record.shape = shape
    record.values = values
    record.lineage = lineage
    return record


@cython.final
cdef Lineage lineage_in(object region, MovingRecord record):
    """Return a lineage for a record that enters an ordered net, for the caller to queue and to give to the record."""
    cdef Lineage lineage = Lineage.__new__(Lineage)
    lineage.parent = record.lineage
    lineage.live = 1
    lineage.region = region
    if lineage.parent is not None:
        lineage.trace = lineage.parent.trace
    return lineage


cdef class Assembly:
    """The recipe of a record's values: new ones, in the order of `keys`, and inherited ones."""

    def __cinit__(self, tuple keys, tuple labels, Shape shape, Shape inherited or None):
        cdef Py_ssize_t number = len(shape.labels)
        cdef Py_ssize_t at
        self.keys = keys
        self.shape = shape
        self.sources = <Py_ssize_t*>PyMem_Malloc((number + 1) * sizeof(Py_ssize_t))
        self.is_tag = <bint*>PyMem_Malloc((number + 1) * sizeof(bint))
        if self.sources is NULL or self.is_tag is NULL:
            raise MemoryError
        for at in range(number):
            label = shape.labels[at]
            if label in labels:
                self.sources[at] = labels.index(label)
                self.is_tag[at] = is_tag(label)
            else:
                self.sources[at] = ~<Py_ssize_t>inherited.slots[label]
                self.is_tag[at] = False

    def __dealloc__(self):
        PyMem_Free(self.sources)
        PyMem_Free(self.is_tag)

    cdef bint build(self, tuple values, PyObject** fresh, tuple inherited) noexcept:
        """Fill a new tuple; return False if a tag's value is neither a plain integer nor a truth value.

        `fresh` is borrowed, so nothing here may run Python's code, as the garbage collector would.
        """
        cdef Py_ssize_t number = len(self.shape.labels)
        cdef Py_ssize_t at, source
        cdef PyObject* value
        for at in range(number):
            source = self.sources[at]
            if source >= 0 and self.is_tag[at]:
                value = fresh[source]
                if value is <PyObject*>True:
                    fresh[source] = <PyObject*>one
                elif value is <PyObject*>False:
                    fresh[source] = <PyObject*>zero
                elif not PyLong_CheckExact(<object>value):
                    return False
        for at in range(number):
            source = self.sources[at]
            value = fresh[source] if source >= 0 else <PyObject*>PyTuple_GET_ITEM(inherited, ~source)
            Py_INCREF(<object>value)
            PyTuple_SET_ITEM(values, at, <object>value)
        return True


cdef enum:
    max_values_on_stack = 256  # of a row; a row with more is read the slower way


@cython.final
cdef class Assembler:
    """Makes records from rows: those sent into a run, or a box's outputs for records of one shape.

    `names` has the labels of names without brackets. `variants` has the permitted sets of labels, or is None.
    Labels of the shape that are not in `consumed`, and not among the new ones, are inherited.
    """

    def __init__(self, Shapes shapes, dict names, object variants, object consumed, Shape shape or None, str place):
        self.shapes = shapes
        self.names = names
        self.variants = variants
        self.consumed = consumed
        self.shape = shape
        self.place = place
        self.known = {}

    cdef Assembly assembly(self, tuple keys):
        """Return how rows with these keys become records."""
        found = self.known.get(keys)
        if found is None:
            found = self.known[keys] = self.new_assembly(keys)
        self.last = <Assembly>found
        return self.last

    cdef Assembly new_assembly(self, tuple keys):
        for key in keys:
            if not isinstance(key, str) or not name_of(key).isidentifier():
                raise RecordError(
                    f"{self.place}: expected labels such as 'a' or '<t>', got {safe_repr(key)}"
                )
        cdef tuple labels = tuple([self.names.get(key, key) for key in keys])
        variant = frozenset(labels)
        if len(variant) < len(labels):
            raise RecordError(f"{self.place}: expected each label once, got the keys {list(keys)}")
        if self.variants is not None and variant not in self.variants:
            raise RecordError(
                f"{self.place}: expected an output of {text_of_type(self.variants)}, got {text_of(variant)}"
            )
        if self.shape is not None:
            variant |= {
                label for label in self.shape.labels if label not in self.consumed and not is_binding(label)
            }
        return Assembly(keys, labels, self.shapes.of(variant), self.shape)

    def labelled(self, output, tuple keys or None):
        """Return what a box's function returned as a dict."""
        if keys is not None and type(output) in _PLAIN:  # the tests below take longer than a record's hop
            if len(keys) == 1:
                return {keys[0]: output}
            if type(output) is tuple and len(<tuple>output) == len(keys):
                return dict(zip(keys, <tuple>output))
        if isinstance(output, Mapping):
            return dict(output)
        if is_dataclass(output) and not isinstance(output, type):
            found = {field.name: getattr(output, field.name) for field in fields(output)}
            if self.variants is None or frozenset([self.names.get(name, name) for name in found]) in self.variants:
                return found
        if keys is not None and not iscoroutine(output) and not isgenerator(output):
            if len(keys) == 1:
                return {keys[0]: output}
            if isinstance(output, tuple) and len(output) == len(keys):
                return dict(zip(keys, output))
        if iscoroutine(output):
            output.close()
            raise RecordError(
                f"{self.place}: expected an output, got a coroutine: a box is awaited if its function is an `async def`"
            )
        if isgenerator(output):
            raise RecordError(f"{self.place}: expected an output, got a generator: a box yields if its function does")
        if self.place == "send()":
            raise RecordError(f"send(): expected a dict or an instance of a dataclass, got {safe_repr(output)}")
        if keys is not None:
            expected = f"a tuple of {len(keys)} or a dict"
        elif self.variants is None:
            expected = "a dict: neither its signature nor its hints say which labels it produces"
        else:
            expected = "a dict, since it may produce records of several variants"
        raise RecordError(f"{self.place}: expected an output that is {expected}, got {safe_repr(output)}")

    def read(self, row):
        """Return the shape and the values of a row. Raises RecordError."""
        cdef MovingRecord into = new_record(None, None, None)
        self.fill(into, row if type(row) is dict else self.labelled(row, None), ())
        return into.shape, into.values

    cdef int fill(self, MovingRecord into, object row, tuple inherited) except -1:
        """Give a record the labels and values of a dict."""
        cdef PyObject* fresh[max_values_on_stack]
        cdef PyObject* key = NULL
        cdef PyObject* value = NULL
        cdef Py_ssize_t position = 0
        cdef Py_ssize_t number = 0
        cdef Assembly assembly = self.last
        cdef tuple keys, values, taken
        if assembly is not None and len(<dict>row) == len(assembly.keys) <= max_values_on_stack:
            keys = assembly.keys
            values = PyTuple_New(len(assembly.shape.labels))
            while PyDict_Next(row, &position, &key, &value):
                if number == len(keys) or key is not <PyObject*>PyTuple_GET_ITEM(keys, number):
                    number = -1
                    break
                fresh[number] = value
                number += 1
            if number == len(keys) and assembly.build(values, fresh, inherited):
                into.values = values
                into.shape = assembly.shape
                return 0
        assembly = self.assembly(tuple(<dict>row))
        taken = self.checked(assembly, [*(<dict>row).values()])
        values = PyTuple_New(len(assembly.shape.labels))
        assembly.build(values, (<PyTupleObject*>taken).ob_item, inherited)
        into.values = values
        into.shape = assembly.shape
        return 0

    cdef tuple checked(self, Assembly assembly, list values):
        """Return the values, tags as plain integers. Raises RecordError."""
        for at, key in enumerate(assembly.keys):
            label = self.names.get(key, key)
            if is_tag(label):
                try:
                    values[at] = int(index(values[at]))
                except TypeError:
                    raise RecordError(
                        f"{self.place}: the tag {label} expects an integer, got {safe_repr(values[at])}"
                    ) from None
        return tuple(values)
