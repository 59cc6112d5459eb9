"""Boxes that run elsewhere, on the event loop or on other threads, and their calls."""

cimport cython

from callboard.nets.kernel.carrier cimport Carrier, Entity, EntityState, NetNode
from callboard.nets.kernel.nodes cimport BoxPlan, take_output
from callboard.nets.kernel.record cimport MovingRecord, Ticket, new_record


@cython.final
cdef class BoxCall:
    """A call of a box that runs elsewhere."""

    @property
    def function(self):
        """The function to be called: the box's, or the replica's."""
        cdef CalledBoxNode node = <CalledBoxNode>self.box
        return node.function if node.factory is None else (<CalledBoxState>self.entity.state).function

    def __repr__(self):
        return f"<BoxCall of {self.box.path} for {self.record!r}>"


@cython.final
cdef class CalledBoxState(EntityState):
    """The state of a box that runs elsewhere."""

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
    cdef readonly Py_ssize_t most  # calls at a time; 0: any number
    cdef bint in_order
    cdef object place  # where it is to run; the label of a tag that has the number of a worker

    def __init__(
        self, str path, object planner, object function, object factory, Py_ssize_t most, bint in_order, object place
    ):
        super().__init__(path, planner)
        self.place = place
        self.function = function
        self.factory = factory
        self.most = most
        self.in_order = in_order

    cdef Entity entity(self, Entity after):
        cdef Entity entity = NetNode.entity(self, after)
        entity.state = CalledBoxState()
        return entity

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        cdef CalledBoxState state = <CalledBoxState>at.state
        self.plan(record.shape)  # an error is at this record, before anything is counted
        if self.factory is not None and state.function is None:
            state.function = self.factory()
        carrier.elsewhere += 1
        if self.most and state.running >= self.most:
            state.waiting.append(record)
            self.waiting += 1
        else:
            self.begin(at, record, carrier)
        return None

    cdef int begin(self, Entity at, MovingRecord record, Carrier carrier) except -1:
        cdef BoxPlan plan = <BoxPlan>self.plan(record.shape)
        cdef CalledBoxState state = <CalledBoxState>at.state
        cdef BoxCall new = BoxCall.__new__(BoxCall)
        new.entity = at
        new.record = record
        new.box = self
        new.arguments = tuple([record.values[slot] for slot in plan.slots])
        state.running += 1
        if self.in_order:
            state.in_order.append(new)
        carrier.calls.append(new)
        carrier.running.add(new)
        self.running += 1
        return 0

    def place_of(self, BoxCall of):
        """Return the hint where a call is to run, or None."""
        place = self.place
        if isinstance(place, str) and place.startswith("<"):
            slot = of.record.shape.slots.get(place)
            return None if slot is None else of.record.values[slot]
        return place

    def give(self, Carrier carrier, BoxCall of, list values):
        """Outputs of a call have come. None of them goes on if one is no output, which raises RecordError."""
        cdef BoxPlan plan = <BoxPlan>self.plan(of.record.shape)
        cdef MovingRecord record = of.record
        cdef MovingRecord output
        cdef list outputs = []
        for value in values:
            output = new_record(None, None, record.ticket)
            take_output(output, plan, value, record.values)
            outputs.append(output)
        self.hand_on(carrier, of, outputs)

    def let_pass(self, Carrier carrier, BoxCall of):
        """The record of a call goes on as it is."""
        cdef MovingRecord record = of.record
        self.hand_on(carrier, of, [new_record(record.shape, record.values, record.ticket)])

    cdef int hand_on(self, Carrier carrier, BoxCall of, list outputs) except -1:
        if not outputs:
            return 0
        of.has_given = True
        if of.record.ticket is not None:
            of.record.ticket.live += len(outputs)
        if self.in_order:
            if (<CalledBoxState>of.entity.state).in_order[0] is not of:
                of.outputs = outputs if of.outputs is None else of.outputs + outputs
                return 0
        for output in reversed(outputs):
            carrier.push(of.entity.following(), <MovingRecord>output)
        return 0

    def end(self, Carrier carrier, BoxCall of):
        """A call has come to its end: the next one begins, and outputs go on that waited for this end."""
        cdef Entity at = of.entity
        cdef CalledBoxState state = <CalledBoxState>at.state
        cdef list in_order = state.in_order
        cdef list let_go = []
        cdef list over = [of]
        cdef BoxCall first
        cdef MovingRecord record
        state.running -= 1
        carrier.elsewhere -= 1
        of.is_done = True
        carrier.running.discard(of)
        self.running -= 1
        self.calls += 1
        if state.waiting:
            self.waiting -= 1
            self.begin(at, <MovingRecord>state.waiting.pop(0), carrier)
        if self.in_order:
            over = []
            while in_order:
                first = <BoxCall>in_order[0]
                if first.outputs:
                    let_go += first.outputs
                    first.outputs = None
                if not first.is_done:
                    break
                over.append(in_order.pop(0))
        for output in reversed(let_go):
            carrier.push(at.following(), <MovingRecord>output)
        for each in over:
            record = (<BoxCall>each).record
            if not (<BoxCall>each).has_given:
                carrier.ended(record)
            elif record.ticket is not None:
                carrier.release(record.ticket)


def records_left(Carrier carrier):
    """Return all records that the entities of a net hold when its run ends before they do, each once.

    A record that a box has put out something for is not among them: its outputs are.
    """
    cdef list left = [carrier.first, *carrier.running]
    cdef set seen = set()
    cdef list found = []
    cdef Entity entity
    cdef BoxCall call
    cdef Ticket ticket
    while left:
        each = left.pop()
        if each is None or id(each) in seen:
            continue
        if type(each) is list:
            left += <list>each
        elif type(each) is dict:
            left += (<dict>each).values()
        elif isinstance(each, EntityState):
            left += (<EntityState>each).contents()
        elif type(each) is Entity:
            seen.add(id(each))
            entity = <Entity>each
            left.append(entity.after)
            left.append(entity.inner)
            left.append(entity.state)
        elif type(each) is MovingRecord:
            seen.add(id(each))
            if (<MovingRecord>each).shape is not None:
                found.append(each)
        elif type(each) is BoxCall:
            seen.add(id(each))
            call = <BoxCall>each
            left.append(call.entity)
            left.append(call.outputs)
            if not call.has_given and not call.is_done:  # it runs, or what it put out has not come in
                left.append(call.record)
        elif type(each) is Ticket:
            seen.add(id(each))
            ticket = <Ticket>each
            left.append(ticket.buffered)
            left.append(ticket.following)
    return found
