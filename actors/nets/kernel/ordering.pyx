"""Ordered nets: their outputs leave in the order of the inputs.

A record that enters an ordered net gets a ticket. All records that come of it have the same ticket. They leave the net
when nothing can come of earlier tickets any more. S-Net's deterministic combinators (Prokesch 2011, 2.2.3) do the same
by control records that go through all branches.
"""

cimport cython

from callboard.nets.kernel.carrier cimport Carrier, Entity, EntityState, NetNode, past
from callboard.nets.kernel.nodes cimport TicketQueue, is_true
from callboard.nets.kernel.record cimport MovingRecord, Ticket, new_record, ticket_in


cdef int flush(Entity region, Ticket first, Carrier carrier) except -1:
    cdef MovingRecord handing = new_record(None, None, None)
    handing.rest = first
    carrier.push(region, handing)
    return 0


@cython.final
cdef class Leave(NetNode):
    """The end of an ordered net: records leave in the order of their tickets."""

    cdef Entity entity(self, Entity after):
        cdef Entity entity = NetNode.entity(self, after)
        entity.state = TicketQueue.__new__(TicketQueue)
        return entity

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        cdef Ticket ticket = record.ticket
        if ticket is not (<TicketQueue>at.state).first or ticket.buffered:
            if ticket.buffered is None:
                ticket.buffered = []
            ticket.buffered.append(record)
            return None
        return self.let_go(at, record, carrier)

    cdef Entity let_go(self, Entity at, MovingRecord record, Carrier carrier):
        cdef Ticket ticket = record.ticket
        record.ticket = ticket.parent
        if ticket.parent is not None:
            ticket.parent.live += 1
        carrier.release(ticket)
        return at.following()

    cdef Entity go_on(self, Entity at, MovingRecord handing, Carrier carrier):
        cdef Ticket first = <Ticket>handing.rest
        cdef MovingRecord record
        cdef Entity following
        if not first.buffered:
            return None
        record = <MovingRecord>first.buffered.pop(0)
        if first.buffered:
            carrier.push(at, handing)
        following = self.let_go(at, record, carrier)
        carrier.push(following, record)
        return None

    cdef int over(self, Entity at, Ticket ticket, Carrier carrier) except -1:
        """Close the first tickets, as far as nothing more comes of them; the next one's records may leave."""
        cdef TicketQueue tickets = <TicketQueue>at.state
        cdef Ticket first = tickets.first
        cdef Ticket parent
        while first is not None and first.live == 0:
            parent = first.parent
            first = first.following
            tickets.first = first
            if first is None:
                tickets.last = None
            if parent is not None:
                carrier.release(parent)
        if first is not None and first.buffered:
            flush(at, first, carrier)
        return 0


@cython.final
cdef class Enter(NetNode):
    """The beginning of an ordered net: each record gets a ticket."""

    cdef NetNode body
    cdef Leave leave

    def __init__(self, str path, NetNode body, Leave leave):
        super().__init__(path, None)
        self.body = body
        self.leave = leave

    cdef Entity entity(self, Entity after):
        cdef Entity entity = NetNode.entity(self, None)
        entity.state = self.leave.entity(after)
        entity.after = self.body.entity(<Entity>entity.state)
        return entity

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        cdef Entity region = <Entity>at.state
        cdef TicketQueue tickets = <TicketQueue>region.state
        cdef Ticket ticket = ticket_in(region, record)
        if tickets.first is None:
            tickets.first = ticket
        else:
            tickets.last.following = ticket
        tickets.last = ticket
        record.ticket = ticket
        return at.following()


@cython.final
cdef class FeedbackState(EntityState):
    """The state of a feedback in an ordered net."""

    cdef bint is_busy  # a record is in the body
    cdef list again  # the records that have come out of the body, the first one last
    cdef list outside  # the records that have come from outside
    cdef list outputs  # what the body has put out for the record in it

    def __cinit__(self):
        self.again = []
        self.outside = []
        self.outputs = []

    cdef list contents(self):
        return self.again + self.outside + self.outputs


@cython.final
cdef class OrderedFeedback(NetNode):
    """A feedback in an ordered net: one record is in the body at a time."""

    cdef NetNode body
    cdef NetNode end

    def __init__(self, str path, object planner, NetNode body):
        super().__init__(path, planner)
        self.body = body
        self.end = OrderedFeedbackEnd(path, None)

    cdef Entity entity(self, Entity after):
        cdef Entity entity = NetNode.entity(self, after)
        entity.state = FeedbackState()
        return entity

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        cdef FeedbackState state = <FeedbackState>at.state
        state.outside.append(record)
        if not state.is_busy:
            self.next(at, carrier)
        return None

    cdef int next(self, Entity at, Carrier carrier) except -1:
        """Let records leave, until one goes into the body."""
        cdef FeedbackState state = <FeedbackState>at.state
        cdef list leaving = []
        cdef MovingRecord record
        cdef Ticket ticket
        while state.again or state.outside:
            record = <MovingRecord>(state.again.pop() if state.again else state.outside.pop(0))
            if not is_true(self.plan(record.shape), record.values):
                leaving.append(record)
                continue
            if at.inner is None:
                at.inner = self.body.entity(self.end.entity(at))
            ticket = Ticket.__new__(Ticket)
            ticket.parent = record.ticket
            ticket.trace = ticket.parent.trace
            ticket.live = 1
            ticket.region = at
            record.ticket = ticket
            state.is_busy = True
            carrier.push(past(<Entity>at.inner), record)
            break
        for record in reversed(leaving):
            carrier.push(at.following(), record)
        return 0

    cdef int over(self, Entity at, Ticket ticket, Carrier carrier) except -1:
        """The record's passage through the body is over."""
        cdef FeedbackState state = <FeedbackState>at.state
        state.is_busy = False
        state.again.extend(reversed(state.outputs))
        state.outputs = []
        self.next(at, carrier)
        carrier.release(ticket.parent)
        return 0


@cython.final
cdef class OrderedFeedbackEnd(NetNode):
    """Where records come out of the body of an OrderedFeedback."""

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        cdef Ticket ticket = record.ticket
        record.ticket = ticket.parent
        ticket.parent.live += 1
        (<FeedbackState>at.after.state).outputs.append(record)
        carrier.release(ticket)
        return None
