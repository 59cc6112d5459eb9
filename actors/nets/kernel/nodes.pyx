"""The nodes of which nets are made, and what they do with a record."""

cimport cython
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int64_t

from callboard.nets.kernel.carrier cimport Carrier, Entity, EntityState, KeptRecords, NetNode, dissolve, past
from callboard.nets.kernel.record cimport MovingRecord, Shape, Ticket, new_record, ticket_in

from callboard.nets.errors import RecordError

_NAN = float("nan")  # for all of them

cdef extern from "Python.h":
    object PyObject_Vectorcall(object function, PyObject** arguments, size_t number, PyObject* keywords)
    ctypedef struct PyTupleObject:
        PyObject** ob_item
    int Py_EnterRecursiveCall(const char* where) except -1
    void Py_LeaveRecursiveCall()


cdef inline object apply(object function, tuple values):
    """Call a function that a plan has made for the values of a shape."""
    return PyObject_Vectorcall(function, (<PyTupleObject*>values).ob_item, PyTuple_GET_SIZE(values), NULL)


# --- filters ---------------------------------------------------------------------------------------------------------


@cython.final
cdef class FilterPlan:
    """How a filter handles records of a shape.

    `function` takes the values. If `single`, it returns those of the output. Else it returns the number of the rule,
    and the values of each output, whose shapes are in `shapes`.
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

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        cdef FilterPlan plan = <FilterPlan>self.plan(record.shape)
        cdef tuple outputs, shapes
        cdef Py_ssize_t number, index
        if plan.single:
            record.values = <tuple>apply(plan.function, record.values)
            record.shape = <Shape>plan.shapes[0]
            return at.following()
        outputs = <tuple>apply(plan.function, record.values)
        shapes = <tuple>plan.shapes[outputs[0]]
        number = len(shapes)
        if number == 0:
            carrier.ended(record)
            return None
        cdef Entity after = at.following()
        if record.ticket is not None:
            record.ticket.live += number - 1
        for index in range(number - 1, 0, -1):
            carrier.push(
                after, new_record(<Shape>shapes[index], <tuple>outputs[index + 1], record.ticket)
            )
        record.values = <tuple>outputs[1]
        record.shape = <Shape>shapes[0]
        return after


# --- boxes -----------------------------------------------------------------------------------------------------------


@cython.final
cdef class BoxPlan:
    """How a box is called for records of a shape, and how its outputs become records."""

    def __init__(self, slots, assembler, keys):
        self.slots = slots
        self.assembler = assembler
        self.keys = keys


cdef enum:
    most_on_stack = 64  # arguments; more of them are put into a tuple


cdef object call(object function, BoxPlan plan, tuple values):
    """Call a box's function."""
    cdef PyObject* arguments[most_on_stack]
    cdef Py_ssize_t number = len(plan.slots)
    cdef Py_ssize_t index
    if number > most_on_stack:
        return function(*[values[slot] for slot in plan.slots])
    for index in range(number):
        arguments[index] = PyTuple_GET_ITEM(values, <Py_ssize_t>plan.slots[index])
    return PyObject_Vectorcall(function, arguments, number, NULL)


cdef int take_output(MovingRecord into, BoxPlan plan, object output, tuple inherited) except -1:
    """Make a record of what a box's function returned."""
    if type(output) is not dict:
        output = plan.assembler.labelled(output, plan.keys)
    return plan.assembler.fill(into, output, inherited)


@cython.final
cdef class BoxNode(NetNode):
    """A box whose function is called by the carrier."""

    cdef object function
    cdef object factory  # makes a function for each replica
    cdef bint generates
    cdef bint holds  # outputs, until all of a record's are there

    def __init__(self, str path, object planner, object function, object factory, bint generates, bint holds):
        super().__init__(path, planner)
        self.function = function
        self.factory = factory
        self.generates = generates
        self.holds = holds

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        cdef BoxPlan plan = <BoxPlan>self.plan(record.shape)
        cdef object function = self.function
        if self.factory is not None:
            if at.state is None:  # it is made for a record, so that an error is at one
                at.state = self.factory()
            function = at.state
        if self.generates and carrier.uses_tickets:  # one record after the other, and others may come meanwhile
            if at.inner is not None:
                (<list>at.inner).append(record)
                return None
            at.inner = []
        cdef int64_t began
        if self.generates:
            try:
                record.rest = iter(call(function, plan, record.values))
                record.held = [] if self.holds else None
            except BaseException:
                self.free(at, carrier)
                raise
            return self.go_on(at, record, carrier)
        began = carrier.ticks.now()
        try:
            output = call(function, plan, record.values)
        finally:
            self.calls += 1
            self.took(carrier.ticks.now() - began)
        if output is None:
            carrier.ended(record)
            return None
        take_output(record, plan, output, record.values)
        return at.following()

    cdef Entity go_on(self, Entity at, MovingRecord record, Carrier carrier):
        cdef BoxPlan plan = <BoxPlan>self.plan(record.shape)
        cdef MovingRecord output
        cdef int64_t until, began = carrier.ticks.now()
        try:
            for value in record.rest:
                if value is None:
                    continue
                until = carrier.ticks.now()
                record.spent += until - began
                began = until
                output = new_record(None, None, record.ticket)
                take_output(output, plan, value, record.values)
                carrier.push_rest(at, record)
                if record.held is not None:
                    record.held.append(output)
                else:
                    if record.ticket is not None:
                        record.ticket.live += 1
                    carrier.push(at.following(), output)
                return None
        except BaseException:
            self.ends(record, began, carrier)
            self.free(at, carrier)
            raise
        self.ends(record, began, carrier)
        self.free(at, carrier)
        if record.held is not None:
            if record.ticket is not None:
                record.ticket.live += len(record.held)
            for each in reversed(record.held):
                carrier.push(at.following(), <MovingRecord>each)
        record.rest = record.held = None
        if record.ticket is not None:
            carrier.release(record.ticket)
        return None

    cdef void ends(self, MovingRecord record, int64_t began, Carrier carrier) noexcept:
        """A generator has given its last output, or has failed."""
        self.calls += 1
        self.took(record.spent + carrier.ticks.now() - began)
        record.spent = 0

    cdef int free(self, Entity at, Carrier carrier) except -1:
        """The function has given all outputs of a record: the next one may come."""
        if at.inner is not None:
            waiting = <list>at.inner
            at.inner = None
            for record in reversed(waiting):
                carrier.push(at, <MovingRecord>record)
        return 0


# --- synchrocells ----------------------------------------------------------------------------------------------------


@cython.final
cdef class SyncPlan:
    """The numbers of the patterns that records of a shape match, and their guards: None, or functions of the values."""

    cdef list patterns
    cdef list guards

    def __init__(self, patterns, guards):
        self.patterns = patterns
        self.guards = guards


@cython.final
cdef class SyncNode(NetNode):
    """A synchrocell. A record that fills several patterns is kept at each.

    `merger` says for the shapes of the kept records, in order, what the
    merged one's shape is, and for each of its values the number of the record and the slot there.
    """

    cdef Py_ssize_t patterns
    cdef object merger
    cdef dict merges

    def __init__(self, str path, object planner, Py_ssize_t patterns, object merger):
        super().__init__(path, planner)
        self.patterns = patterns
        self.merger = merger
        self.merges = {}

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        cdef SyncPlan plan = <SyncPlan>self.plan(record.shape)
        cdef KeptRecords kept = <KeptRecords>at.state
        cdef list fills = []
        cdef Py_ssize_t index
        for index in range(len(plan.patterns)):
            number = plan.patterns[index]
            guard = plan.guards[index]
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
            carrier.keep(at)
        for number in fills:
            kept.records[<Py_ssize_t>number] = record
        kept.filled += len(fills)
        if kept.filled < self.patterns:
            # It has no claim on order any more, and nobody waits for what comes of it.
            if record.ticket is not None:
                if record.ticket.trace is not None:
                    carrier.note(record, self, "kept")
                carrier.release(record.ticket)
            return None
        cdef Entity after = at.following()
        carrier.keep_no_more(at)
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


# --- choices ---------------------------------------------------------------------------------------------------------


@cython.final
cdef class TicketQueue(EntityState):
    """The state of an ordered net's end: the tickets of the records in the net, in their order."""

    cdef list contents(self):
        return [self.first]


cdef int put_first(Entity region, MovingRecord record) except -1:
    """Have a record enter an ordered net before all that are in it."""
    cdef TicketQueue tickets = <TicketQueue>region.state
    cdef Ticket ticket = ticket_in(region, record)
    ticket.following = tickets.first
    if tickets.first is None:
        tickets.last = ticket
    tickets.first = record.ticket = ticket
    return 0


@cython.final
cdef class Unstarted:
    """The choices whose initialisers run when the net begins. Those of later replicas run before their first record."""

    cdef list entities  # None once the net has begun

    def __cinit__(self):
        self.entities = []

    def start(self, Carrier carrier):
        """Have the initialisers run, also of choices that are made meanwhile."""
        for entity in self.entities:
            if (<Entity>entity).state is None:
                (<ChoiceNode>(<Entity>entity).node).start(carrier, <Entity>entity, None)
        self.entities = None


@cython.final
cdef class ChoiceNode(NetNode):
    """A choice. A plan is the number of a branch, or the numbers of those that match equally well, in a list.

    `inner` of its entity is a list with the branches' entities, made when the first record comes for them.
    """

    cdef list branches
    cdef list initialisers  # the numbers of branches that run once, and take no records
    cdef Py_ssize_t turn  # counts records that match several branches equally well
    cdef Unstarted unstarted
    cdef bint in_order  # it is an ordered net of its own: records have a ticket for it, and it ends at a Leave

    def __init__(self, str path, object planner, list branches, list initialisers, Unstarted unstarted, bint in_order):
        super().__init__(path, planner)
        self.branches = branches
        self.initialisers = initialisers
        self.unstarted = unstarted
        self.in_order = in_order

    cdef Entity entity(self, Entity after):
        cdef Entity entity = NetNode.entity(self, after)
        entity.inner = [None] * len(self.branches)
        if self.initialisers and self.unstarted.entities is not None:
            self.unstarted.entities.append(entity)
        return entity

    def start(self, Carrier carrier, Entity at, MovingRecord record or None):
        """Have the initialisers run: before the first record, or for the first record's ticket.

        In an ordered net, what comes of them leaves before what comes of the first record.
        """
        cdef MovingRecord trigger
        cdef Ticket ticket = None
        cdef Entity branch
        at.state = True
        for number in reversed(self.initialisers):
            branch = (<NetNode>self.branches[number]).entity(at.following())
            trigger = new_record(carrier.shapes.of(frozenset()), (), None)
            if record is None:
                carrier.enter(branch, trigger, None)
            else:
                ticket = record.ticket
                if self.in_order:
                    ticket = ticket.parent
                trigger.ticket = ticket
                if ticket is not None:
                    ticket.live += 1
                carrier.push(branch, trigger)
            if self.in_order:
                put_first(at.following(), trigger)

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        if self.initialisers and at.state is None:
            carrier.push(at, record)
            self.start(carrier, at, record)
            return None
        chosen = self.plan(record.shape)
        cdef Py_ssize_t number
        if type(chosen) is list:
            number = (<list>chosen)[self.turn % len(<list>chosen)]
            self.turn += 1
        else:
            number = chosen
        cdef list inner = <list>at.inner
        branch = inner[number]
        if branch is None:
            branch = inner[number] = (<NetNode>self.branches[number]).entity(at.following())
        return <Entity>branch


# --- replication -----------------------------------------------------------------------------------------------------


cdef bint is_true(object test, tuple values) except -1:
    """Look whether a record matches: a test is True, False, or a function of the values."""
    if test is True or test is False:
        return test is True
    return bool(apply(test, values))


@cython.final
cdef class ReplicaCount(EntityState):
    """The state that the entities of one star share: how many replicas it has."""

    cdef Py_ssize_t number


@cython.final
cdef class StarNode(NetNode):
    """A serial replication. A plan tells whether a record leaves.

    Each replica has an entity before it, whose `inner` is the replica, made when the first record comes for it.
    """

    cdef NetNode body
    cdef public NetNode again  # what comes after a replica: this node, or an ordered net with it
    cdef Py_ssize_t limit
    cdef list within  # the boxes, filters and cells of the body

    def __init__(self, str path, object planner, NetNode body, Py_ssize_t limit, list within):
        super().__init__(path, planner)
        self.body = body
        self.limit = limit
        self.within = within
        self.again = self

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        if is_true(self.plan(record.shape), record.values):
            return at.following()
        cdef Entity inner = <Entity>at.inner if at.inner is not None else self.unfold(at, record)
        if inner.node is None:
            inner = inner.following()
            at.inner = inner
            if inner.node is self:  # nothing is left of the replica, so nothing is decided here
                (<ReplicaCount>at.state).number -= 1
                dissolve(at, inner)
        return inner

    cdef Entity unfold(self, Entity at, MovingRecord record):
        """Make another replica."""
        if at.state is None:
            at.state = ReplicaCount.__new__(ReplicaCount)
        cdef ReplicaCount replicas = <ReplicaCount>at.state
        if replicas.number >= self.limit:
            came = ", ".join([f"{(<NetNode>each).passed} to {(<NetNode>each).path}" for each in self.within])
            raise RecordError(
                f"{self.place}: {record!r} ran away: it is the first to need more than {self.limit} replicas in series."
                f" In these, records came so often to the places: {came}"
            )
        replicas.number += 1
        cdef Entity following = self.again.entity(at.following())
        if following.node is self:
            following.state = replicas
        else:
            following.after.state = replicas
        cdef Entity inner = self.body.entity(following)
        at.inner = inner
        return inner


cdef object as_key(object value):
    """Return a value, with one NaN in place of all that differ from themselves, in tuples within it, too."""
    if isinstance(value, tuple):
        Py_EnterRecursiveCall(" while looking for NaN")
        try:
            parts = [as_key(part) for part in <tuple>value]
        finally:
            Py_LeaveRecursiveCall()
        for old, new in zip(<tuple>value, parts):
            if old is not new:
                return tuple(parts)
        return value
    try:
        return _NAN if value != value else value
    except Exception:  # as of pandas' NA, which is one object
        return value


@cython.final
cdef class SplitNode(NetNode):
    """A parallel replication. A plan is the slot of the value. `inner` of its entity has the replicas by values.

    All NaN, and other values that differ from themselves, are one value, alone and within tuples.
    """

    cdef NetNode body
    cdef bint may_end  # a replica may be back in its first state, and then there is no need to keep it

    def __init__(self, str path, object planner, NetNode body, bint may_end):
        super().__init__(path, planner)
        self.body = body
        self.may_end = may_end

    cdef Entity entity(self, Entity after):
        cdef Entity entity = NetNode.entity(self, after)
        entity.inner = {}
        return entity

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        cdef dict replicas = <dict>at.inner
        value = record.values[<Py_ssize_t>self.plan(record.shape)]
        found = replicas.get(value)
        if found is None and type(value) not in (int, str):
            value = as_key(value)
            found = replicas.get(value)
        if found is None:
            found = replicas[value] = self.body.entity(at.following())
        if self.may_end:
            carrier.touched.append((at, value))
        return <Entity>found


def sweep(Carrier carrier):
    """Forget replicas of splits that are as they were made: stars without replicas of their own.

    The carrier's stack has to be empty, so that no record is on its way to one.
    """
    cdef Entity replica, inner
    cdef dict replicas
    for split, value in carrier.touched:
        replicas = <dict>(<Entity>split).inner if (<Entity>split).inner is not None else {}
        if value not in replicas:
            continue
        replica = past(<Entity>replicas[value])
        while replica.inner is not None:
            inner = past(<Entity>replica.inner)
            if inner.node is not replica.node:
                break
            (<ReplicaCount>replica.state).number -= 1
            dissolve(replica, inner)
            replica = inner
        replicas[value] = replica
        if replica.inner is None:
            del replicas[value]
            replica.node.alive -= 1
    carrier.touched.clear()


# --- feedback --------------------------------------------------------------------------------------------------------


@cython.final
cdef class FeedbackNode(NetNode):
    """A feedback. A plan tells whether a record goes into the body, whose outputs come back here."""

    cdef NetNode body

    def __init__(self, str path, object planner, NetNode body):
        super().__init__(path, planner)
        self.body = body

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        if not is_true(self.plan(record.shape), record.values):
            return at.following()
        if at.inner is None:
            at.inner = self.body.entity(at)
        cdef Entity inner = past(<Entity>at.inner)
        if inner is at:
            raise RecordError(f"{self.path}: {record!r} comes back as it is, again and again")
        if carrier.hops >= carrier.until:  # others have their turn, even if this goes on forever
            carrier.push(inner, record)
            return None
        return inner
