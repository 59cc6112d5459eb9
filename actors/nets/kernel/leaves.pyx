"""Boxes, filters and synchrocells: the leaves of a net, and what they do with a record."""

cimport cython
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport int64_t

from callboard.nets.kernel.executor cimport Entity, EntityState, KeptRecords, NetExecutor, NetNode, apply, dissolve
from callboard.nets.kernel.record cimport MovingRecord, Shape, new_record

cdef extern from "Python.h":
    object PyObject_Vectorcall(object function, PyObject** arguments, size_t number, PyObject* keywords)


# --- filters ---------------------------------------------------------------------------------------------------------


@cython.final
cdef class SpecializedFilter:
    """A filter, for records of one shape.

    `function` takes the values. If `single`, it returns those of the one output. Otherwise it returns the number of the
    rule, and the values of each output, whose shapes are in `shapes`.
    """

    cdef object function
    cdef bint single
    cdef list shapes

    def __init__(self, function, single, shapes):
        self.function = function
        self.single = single
        self.shapes = shapes


@cython.final
cdef class FilterNode(NetNode):
    """A filter."""

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        cdef SpecializedFilter special = <SpecializedFilter>self.specialized(record.shape)
        cdef tuple outputs, shapes
        cdef Py_ssize_t number, index
        if special.single:
            record.values = <tuple>apply(special.function, record.values)
            record.shape = <Shape>special.shapes[0]
            return at.following()
        outputs = <tuple>apply(special.function, record.values)
        shapes = <tuple>special.shapes[outputs[0]]
        number = len(shapes)
        if number == 0:
            executor.ended(record)
            return None
        cdef Entity after = at.following()
        if record.lineage is not None:
            record.lineage.live += number - 1
        for index in range(number - 1, 0, -1):
            executor.push(
                after, new_record(<Shape>shapes[index], <tuple>outputs[index + 1], record.lineage)
            )
        record.values = <tuple>outputs[1]
        record.shape = <Shape>shapes[0]
        return after


# --- boxes -----------------------------------------------------------------------------------------------------------


@cython.final
cdef class SpecializedBox:
    """A box, for records of one shape: the values that it is called with, and how outputs become records."""

    def __init__(self, slots, assembler, keys):
        self.slots = slots
        self.assembler = assembler
        self.keys = keys


cdef enum:
    max_on_stack = 64  # arguments; more are passed in a tuple


cdef object call(object function, SpecializedBox special, tuple values):
    """Call a box's function."""
    cdef PyObject* arguments[max_on_stack]
    cdef Py_ssize_t number = len(special.slots)
    cdef Py_ssize_t index
    if number > max_on_stack:
        return function(*[values[slot] for slot in special.slots])
    for index in range(number):
        arguments[index] = PyTuple_GET_ITEM(values, <Py_ssize_t>special.slots[index])
    return PyObject_Vectorcall(function, arguments, number, NULL)


cdef int take_output(MovingRecord into, SpecializedBox special, object output, tuple inherited) except -1:
    """Make a record of the value that a box's function returned."""
    if type(output) is not dict:
        output = special.assembler.labelled(output, special.keys)
    return special.assembler.fill(into, output, inherited)


cdef class BoxNode(NetNode):
    """A box whose function the executor calls."""

    def __init__(self, str path, object specialize, object function, object factory, bint generates, bint collects):
        super().__init__(path, specialize)
        self.function = function
        self.factory = factory
        self.generates = generates
        self.collects = collects

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        cdef SpecializedBox special = <SpecializedBox>self.specialized(record.shape)
        cdef object function = self.function
        if self.factory is not None:
            if at.state is None:  # made for a record, which an error then names
                at.state = self.factory()
            function = at.state
        if self.generates and executor.keeps_lineage:  # one record at a time
            if at.inner is not None:
                (<list>at.inner).append(record)
                return None
            at.inner = []
        cdef int64_t began
        if self.generates:
            try:
                record.rest = iter(call(function, special, record.values))
                record.collected = [] if self.collects else None
            except BaseException:
                self.let_next_in(at, executor)
                raise
            return self.go_on(at, record, executor)
        began = executor.ticks.now()
        try:
            output = call(function, special, record.values)
        finally:
            self.calls += 1
            self.add_try(executor.ticks.now() - began)
        if output is None:
            executor.ended(record)
            return None
        take_output(record, special, output, record.values)
        return at.following()

    cdef Entity go_on(self, Entity at, MovingRecord record, NetExecutor executor):
        cdef SpecializedBox special = <SpecializedBox>self.specialized(record.shape)
        cdef MovingRecord output
        cdef int64_t until, began = executor.ticks.now()
        try:
            for value in record.rest:
                if value is None:
                    continue
                until = executor.ticks.now()
                record.spent += until - began
                began = until
                output = new_record(None, None, record.lineage)
                take_output(output, special, value, record.values)
                executor.push_rest(at, record)
                if record.collected is not None:
                    record.collected.append(output)
                else:
                    if record.lineage is not None:
                        record.lineage.live += 1
                    executor.push(at.following(), output)
                return None
        except BaseException:
            self.end(record, began, executor)
            self.let_next_in(at, executor)
            raise
        self.end(record, began, executor)
        self.let_next_in(at, executor)
        if record.collected is not None:
            if record.lineage is not None:
                record.lineage.live += len(record.collected)
            for each in reversed(record.collected):
                executor.push(at.following(), <MovingRecord>each)
        record.rest = record.collected = None
        if record.lineage is not None:
            executor.release(record.lineage)
        return None

    cdef void end(self, MovingRecord record, int64_t began, NetExecutor executor) noexcept:
        """Count a generator that has given its last output, or has failed."""
        self.calls += 1
        self.add_try(record.spent + executor.ticks.now() - began)
        record.spent = 0

    cdef int let_next_in(self, Entity at, NetExecutor executor) except -1:
        """Let the next records in: the function has given all outputs of this one."""
        if at.inner is not None:
            waiting = <list>at.inner
            at.inner = None
            for record in reversed(waiting):
                executor.push(at, <MovingRecord>record)
        return 0


# --- synchrocells ----------------------------------------------------------------------------------------------------


@cython.final
cdef class SpecializedSync:
    """A synchrocell, for records of one shape: the numbers of the patterns that they match, and their guards.

    A guard is None or a function of the values.
    """

    cdef list patterns
    cdef list guards

    def __init__(self, patterns, guards):
        self.patterns = patterns
        self.guards = guards


@cython.final
cdef class SyncNode(NetNode):
    """A synchrocell. A record that fills several patterns is kept at each.

    For the shapes of the kept records, in order, `merger` returns the shape of the merged record, and for each of its
    values the number of the record and the slot there.
    """

    cdef Py_ssize_t patterns
    cdef object merger
    cdef dict merges

    def __init__(self, str path, object specialize, Py_ssize_t patterns, object merger):
        super().__init__(path, specialize)
        self.patterns = patterns
        self.merger = merger
        self.merges = {}

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        cdef SpecializedSync special = <SpecializedSync>self.specialized(record.shape)
        cdef KeptRecords kept = <KeptRecords>at.state
        cdef list fills = []
        cdef Py_ssize_t index
        for index in range(len(special.patterns)):
            number = special.patterns[index]
            guard = special.guards[index]
            if kept is not None and kept.records[<Py_ssize_t>number] is not None:
                continue
            if guard is None or apply(guard, record.values):
                fills.append(number)
        if not fills:
            return at.following()
        if kept is None:
            kept = KeptRecords.__new__(KeptRecords)
            kept.records = [None] * self.patterns
            at.state = kept
            executor.note_kept(at)
        for number in fills:
            kept.records[<Py_ssize_t>number] = record
        kept.filled += len(fills)
        if kept.filled < self.patterns:
            # It no longer has a place in an order, and nobody waits for its outputs.
            if record.lineage is not None:
                if record.lineage.trace is not None:
                    executor.note(record, self, "kept")
                executor.release(record.lineage)
            return None
        cdef Entity after = at.following()
        executor.note_emptied(at)
        dissolve(at, after)
        self.merge(kept.records, record)
        return after

    cdef int merge(self, list kept, MovingRecord last) except -1:
        first = kept[0]
        key = tuple([(<MovingRecord>each).shape for each in kept]), tuple([each is first for each in kept])
        found = self.merges.get(key)
        if found is None:
            found = self.merges[key] = self.merger(*key)
        shape, places = <tuple>found
        last.values = tuple([(<MovingRecord>kept[number]).values[slot] for number, slot in <list>places])
        last.shape = <Shape>shape
        return 0


# --- calls elsewhere -------------------------------------------------------------------------------------------------


@cython.final
cdef class BoxCall(EntityState):
    """A call of a box that runs elsewhere."""

    cdef Entity entity
    cdef readonly MovingRecord record
    cdef readonly tuple arguments
    cdef readonly object box
    cdef bint is_done
    cdef list outputs  # that wait for earlier calls
    cdef public Py_ssize_t tries
    cdef public bint is_over  # nothing more comes of it
    cdef bint has_given

    @property
    def size(self):
        """The number of records at work."""
        return 1

    @property
    def function(self):
        """The function to be called: the box's, or the replica's."""
        cdef CalledBoxNode node = <CalledBoxNode>self.box
        return node.function if node.factory is None else (<CalledBoxState>self.entity.state).function

    cdef list contents(self):
        cdef list held = [self.entity, self.outputs]
        if not self.has_given and not self.is_done:  # it runs, or its outputs have not come in
            held.append(self.record)
        return held

    def __repr__(self):
        return f"<BoxCall of {self.box.path} for {self.record!r}>"


@cython.final
cdef class CalledBoxState(EntityState):
    """The state of a box that runs elsewhere."""

    cdef Py_ssize_t running  # calls
    cdef list waiting  # the records for which no call has begun
    cdef object function  # the replica's own, if each has one
    cdef list in_order  # the calls whose outputs are to be in order, the first one first

    def __cinit__(self):
        self.waiting = []
        self.in_order = []

    cdef list contents(self):
        return self.waiting + self.in_order


@cython.final
cdef class CalledBoxNode(NetNode):
    """A box whose function runs elsewhere: on the event loop, or on another thread."""

    cdef readonly object function
    cdef readonly object factory
    cdef Py_ssize_t max_calls  # at a time; 0: any number
    cdef bint in_order
    cdef object where  # a hint for its calls; or the label of a tag that has the number of a worker

    def __init__(
        self, str path, object specialize, object function, object factory, Py_ssize_t max_calls, bint in_order,
        object where
    ):
        super().__init__(path, specialize)
        self.where = where
        self.function = function
        self.factory = factory
        self.max_calls = max_calls
        self.in_order = in_order

    cdef Entity entity(self, Entity after):
        cdef Entity entity = NetNode.entity(self, after)
        entity.state = CalledBoxState()
        return entity

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        cdef CalledBoxState state = <CalledBoxState>at.state
        self.specialized(record.shape)  # an error names this record, before anything is counted
        if self.factory is not None and state.function is None:
            state.function = self.factory()
        executor.elsewhere += 1
        if self.max_calls and state.running >= self.max_calls:
            state.waiting.append(record)
            self.waiting += 1
        else:
            self.begin(at, record, executor)
        return None

    cdef int begin(self, Entity at, MovingRecord record, NetExecutor executor) except -1:
        cdef SpecializedBox special = <SpecializedBox>self.specialized(record.shape)
        cdef CalledBoxState state = <CalledBoxState>at.state
        cdef BoxCall new = BoxCall.__new__(BoxCall)
        new.entity = at
        new.record = record
        new.box = self
        new.arguments = tuple([record.values[slot] for slot in special.slots])
        state.running += 1
        if self.in_order:
            state.in_order.append(new)
        executor.calls.append(new)
        executor.running.add(new)
        self.running += 1
        return 0

    def place_of(self, BoxCall of):
        """Return the hint where a call is to run, or None."""
        if isinstance(self.where, str) and self.where.startswith("<"):
            slot = of.record.shape.slots.get(self.where)
            return None if slot is None else of.record.values[slot]
        return self.where

    def give(self, NetExecutor executor, BoxCall of, list values):
        """Pass on outputs of a call. If one is invalid, none is passed on, and RecordError is raised."""
        cdef SpecializedBox special = <SpecializedBox>self.specialized(of.record.shape)
        cdef MovingRecord record = of.record
        cdef MovingRecord output
        cdef list outputs = []
        for value in values:
            output = new_record(None, None, record.lineage)
            take_output(output, special, value, record.values)
            outputs.append(output)
        self.pass_on(executor, of, outputs)

    def pass_record(self, NetExecutor executor, BoxCall of):
        """Pass on the record of a call as it is."""
        cdef MovingRecord record = of.record
        self.pass_on(executor, of, [new_record(record.shape, record.values, record.lineage)])

    cdef int pass_on(self, NetExecutor executor, BoxCall of, list outputs) except -1:
        if not outputs:
            return 0
        of.has_given = True
        if of.record.lineage is not None:
            of.record.lineage.live += len(outputs)
        if self.in_order:
            if (<CalledBoxState>of.entity.state).in_order[0] is not of:
                of.outputs = outputs if of.outputs is None else of.outputs + outputs
                return 0
        for output in reversed(outputs):
            executor.push(of.entity.following(), <MovingRecord>output)
        return 0

    def end(self, NetExecutor executor, BoxCall of):
        """End a call: the next one begins, and outputs that waited for this end are passed on."""
        cdef Entity at = of.entity
        cdef CalledBoxState state = <CalledBoxState>at.state
        cdef list in_order = state.in_order
        cdef list released = []
        cdef list over = [of]
        cdef BoxCall first
        cdef MovingRecord record
        state.running -= 1
        executor.elsewhere -= 1
        of.is_done = True
        executor.running.discard(of)
        self.running -= 1
        self.calls += 1
        if state.waiting:
            self.waiting -= 1
            self.begin(at, <MovingRecord>state.waiting.pop(0), executor)
        if self.in_order:
            over = []
            while in_order:
                first = <BoxCall>in_order[0]
                if first.outputs:
                    released += first.outputs
                    first.outputs = None
                if not first.is_done:
                    break
                over.append(in_order.pop(0))
        for output in reversed(released):
            executor.push(at.following(), <MovingRecord>output)
        for each in over:
            record = (<BoxCall>each).record
            if not (<BoxCall>each).has_given:
                executor.ended(record)
            elif record.lineage is not None:
                executor.release(record.lineage)
