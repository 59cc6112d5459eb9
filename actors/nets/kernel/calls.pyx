"""Boxes that run elsewhere, on the event loop or on other threads, and their calls."""

cimport cython

from callboard.nets.kernel.carrier cimport Carrier, Entity, NetNode
from callboard.nets.kernel.nodes cimport BoxPlan, take_output
from callboard.nets.kernel.record cimport MovingRecord, new_record


@cython.final
cdef class BoxCall:
    """A call of a box that runs elsewhere."""

    @property
    def function(self):
        """The function to be called: the box's, or the replica's."""
        cdef CalledBoxNode node = <CalledBoxNode>self.box
        return node.function if node.factory is None else self.entity.state[2]

    def __repr__(self):
        return f"<BoxCall of {self.box.path} for {self.record!r}>"


@cython.final
cdef class CalledBoxNode(NetNode):
    """A box whose function runs elsewhere: on the event loop, or on another thread.

    The state of its entity is a list: how many calls are running, the records that wait for one, the function of the
    replica, and the calls in order, if their outputs have to be in it.
    """

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
        entity.state = [0, [], None, []]
        return entity

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        cdef list state = <list>at.state
        self.plan(record.shape)  # an error is at this record, before anything is counted
        if self.factory is not None and state[2] is None:
            state[2] = self.factory()
        carrier.elsewhere += 1
        if self.most and state[0] >= self.most:
            state[1].append(record)
            self.waiting += 1
        else:
            self.begin(at, record, carrier)
        return None

    cdef int begin(self, Entity at, MovingRecord record, Carrier carrier) except -1:
        cdef BoxPlan plan = <BoxPlan>self.plan(record.shape)
        cdef list state = <list>at.state
        cdef BoxCall new = BoxCall.__new__(BoxCall)
        new.entity = at
        new.record = record
        new.box = self
        new.arguments = tuple([record.values[slot] for slot in plan.slots])
        state[0] += 1
        if self.in_order:
            state[3].append(new)
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
        cdef list in_order
        if not outputs:
            return 0
        of.has_given = True
        if of.record.ticket is not None:
            of.record.ticket.live += len(outputs)
        if self.in_order:
            in_order = (<list>of.entity.state)[3]
            if in_order[0] is not of:
                of.outputs = outputs if of.outputs is None else of.outputs + outputs
                return 0
        for output in reversed(outputs):
            carrier.push(of.entity.following(), <MovingRecord>output)
        return 0

    def end(self, Carrier carrier, BoxCall of):
        """A call has come to its end: the next one begins, and outputs go on that waited for this end."""
        cdef Entity at = of.entity
        cdef list state = <list>at.state
        cdef list in_order = state[3]
        cdef list let_go = []
        cdef list over = [of]
        cdef BoxCall first
        cdef MovingRecord record
        state[0] -= 1
        carrier.elsewhere -= 1
        of.is_done = True
        carrier.running.discard(of)
        self.running -= 1
        self.calls += 1
        if state[1]:
            self.waiting -= 1
            self.begin(at, <MovingRecord>state[1].pop(0), carrier)
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
