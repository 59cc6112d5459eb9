"""The records that are left in a net when its run ends before they do."""

from callboard.nets.kernel.calls cimport BoxCall
from callboard.nets.kernel.carrier cimport Carrier, Entity
from callboard.nets.kernel.record cimport MovingRecord, Ticket


def remains(Carrier carrier):
    """Return all records that the entities of a net hold, each once.

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
