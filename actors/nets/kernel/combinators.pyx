"""Choices, replications, feedbacks and ordered nets: the nodes that combine others."""

cimport cython

from callboard.nets.kernel.executor cimport Entity, EntityState, NetExecutor, NetNode, apply, dissolve, past
from callboard.nets.kernel.record cimport Lineage, MovingRecord, lineage_in, new_record

from callboard.nets.errors import RecordError

_NAN = float("nan")  # for all of them

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except -1
    void Py_LeaveRecursiveCall()


# --- choices ---------------------------------------------------------------------------------------------------------


@cython.final
cdef class Unstarted:
    """Choices whose initialisers run when the net begins. Those of later replicas run before their first record."""

    cdef list entities  # None once the net has begun

    def __cinit__(self):
        self.entities = []

    def start(self, NetExecutor executor):
        """Run the initialisers, also those of choices that this makes."""
        for entity in self.entities:
            if (<Entity>entity).state is None:
                (<ChoiceNode>(<Entity>entity).node).start(executor, <Entity>entity, None)
        self.entities = None


@cython.final
cdef class ChoiceNode(NetNode):
    """A choice. For a shape it is specialized to the number of a branch, or a list of those that match equally well.

    `inner` of its entity is a list with the branches' entities, made when the first record comes for them.
    """

    cdef list branches
    cdef list initialisers  # the numbers of branches that run once, and take no records
    cdef Py_ssize_t ties  # records so far that matched several branches equally well
    cdef Unstarted unstarted
    cdef bint in_order  # it is an ordered net itself: records have a lineage for it, and it ends at a Leave

    def __init__(
        self, str path, object specialize, list branches, list initialisers, Unstarted unstarted, bint in_order
    ):
        super().__init__(path, specialize)
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

    def start(self, NetExecutor executor, Entity at, MovingRecord record or None):
        """Run the initialisers: before the first record, or in the first record's lineage.

        In an ordered net, their outputs leave before those of the first record.
        """
        cdef MovingRecord trigger
        cdef Lineage lineage = None
        cdef Entity branch
        at.state = True
        for number in reversed(self.initialisers):
            branch = (<NetNode>self.branches[number]).entity(at.following())
            trigger = new_record(executor.shapes.of(frozenset()), (), None)
            if record is None:
                executor.enter(branch, trigger, None)
            else:
                lineage = record.lineage
                if self.in_order:
                    lineage = lineage.parent
                trigger.lineage = lineage
                if lineage is not None:
                    lineage.live += 1
                executor.push(branch, trigger)
            if self.in_order:
                put_first(at.following(), trigger)

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        if self.initialisers and at.state is None:
            executor.push(at, record)
            self.start(executor, at, record)
            return None
        chosen = self.specialized(record.shape)
        cdef Py_ssize_t number
        if type(chosen) is list:
            number = (<list>chosen)[self.ties % len(<list>chosen)]
            self.ties += 1
        else:
            number = chosen
        cdef list inner = <list>at.inner
        branch = inner[number]
        if branch is None:
            branch = inner[number] = (<NetNode>self.branches[number]).entity(at.following())
        return <Entity>branch


# --- replication -----------------------------------------------------------------------------------------------------


cdef bint is_true(object test, tuple values) except -1:
    """Tell whether a record matches: a test is True, False, or a function of the values."""
    if test is True or test is False:
        return test is True
    return bool(apply(test, values))


@cython.final
cdef class ReplicaCount(EntityState):
    """The state that the entities of one star share: how many replicas it has."""

    cdef Py_ssize_t number


@cython.final
cdef class StarNode(NetNode):
    """A serial replication. For a shape it is specialized to the test whether a record leaves.

    Each replica has an entity before it, whose `inner` is the replica, made when the first record comes for it.
    """

    cdef NetNode body
    cdef public NetNode again  # what comes after a replica: this node, or an ordered net with it
    cdef Py_ssize_t limit
    cdef list within  # the boxes, filters and cells of the body

    def __init__(self, str path, object specialize, NetNode body, Py_ssize_t limit, list within):
        super().__init__(path, specialize)
        self.body = body
        self.limit = limit
        self.within = within
        self.again = self

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        if is_true(self.specialized(record.shape), record.values):
            return at.following()
        cdef Entity inner = <Entity>at.inner if at.inner is not None else self.unfold(at, record)
        if inner.node is None:
            inner = inner.following()
            at.inner = inner
            if inner.node is self:  # nothing is left of the replica, so there is nothing to test for
                (<ReplicaCount>at.state).number -= 1
                dissolve(at, inner)
        return inner

    cdef Entity unfold(self, Entity at, MovingRecord record):
        """Make the next replica."""
        if at.state is None:
            at.state = ReplicaCount.__new__(ReplicaCount)
        cdef ReplicaCount replicas = <ReplicaCount>at.state
        if replicas.number >= self.limit:
            came = ", ".join([f"{(<NetNode>each).passed} to {(<NetNode>each).path}" for each in self.within])
            raise RecordError(
                f"{self.place}: expected at most {self.limit} replicas in series, got {record!r}, which needs more."
                f" In these, records came {came}"
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
    """Return a value with one NaN for all values that differ from themselves, also within tuples."""
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
    except Exception:  # pandas' NA, for one, which is one object
        return value


@cython.final
cdef class SplitNode(NetNode):
    """A parallel replication. For a shape it is specialized to the value's slot. Its entity maps values to replicas.

    All NaN, and other values that differ from themselves, count as one value, alone and within tuples.
    """

    cdef NetNode body
    cdef bint may_end  # a replica may return to its first state, and need not be kept then

    def __init__(self, str path, object specialize, NetNode body, bint may_end):
        super().__init__(path, specialize)
        self.body = body
        self.may_end = may_end

    cdef Entity entity(self, Entity after):
        cdef Entity entity = NetNode.entity(self, after)
        entity.inner = {}
        return entity

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        cdef dict replicas = <dict>at.inner
        value = record.values[<Py_ssize_t>self.specialized(record.shape)]
        found = replicas.get(value)
        if found is None and type(value) not in (int, str):
            value = as_key(value)
            found = replicas.get(value)
        if found is None:
            found = replicas[value] = self.body.entity(at.following())
        if self.may_end:
            executor.touched.append((at, value))
        return <Entity>found


def sweep(NetExecutor executor):
    """Drop replicas of splits that are in their first state: stars without replicas.

    The executor's stack has to be empty, so that no record is on its way to one.
    """
    cdef Entity replica, inner
    cdef dict replicas
    for split, value in executor.touched:
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
    executor.touched.clear()


# --- feedback --------------------------------------------------------------------------------------------------------


@cython.final
cdef class FeedbackNode(NetNode):
    """A feedback. For a shape it is specialized to the test whether a record enters the body. Outputs return here."""

    cdef NetNode body

    def __init__(self, str path, object specialize, NetNode body):
        super().__init__(path, specialize)
        self.body = body

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        if not is_true(self.specialized(record.shape), record.values):
            return at.following()
        if at.inner is None:
            at.inner = self.body.entity(at)
        cdef Entity inner = past(<Entity>at.inner)
        if inner is at:
            raise RecordError(f"{self.path}: expected a body that changes {record!r}, which returns without end")
        if executor.hops >= executor.until:  # others run, even if this goes on forever
            executor.push(inner, record)
            return None
        return inner


# --- order -----------------------------------------------------------------------------------------------------------


@cython.final
cdef class LineageQueue(EntityState):
    """The state of an ordered net's end: the lineages of the records in the net, in their order."""

    cdef Lineage first
    cdef Lineage last

    cdef list contents(self):
        return [self.first]


cdef int put_first(Entity region, MovingRecord record) except -1:
    """Let a record into an ordered net, before all that are in it."""
    cdef LineageQueue queue = <LineageQueue>region.state
    cdef Lineage lineage = lineage_in(region, record)
    lineage.following = queue.first
    if queue.first is None:
        queue.last = lineage
    queue.first = record.lineage = lineage
    return 0


@cython.final
cdef class Leave(NetNode):
    """The end of an ordered net: records leave in the order of their lineages."""

    cdef Entity entity(self, Entity after):
        cdef Entity entity = NetNode.entity(self, after)
        entity.state = LineageQueue.__new__(LineageQueue)
        return entity

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        cdef Lineage lineage = record.lineage
        if lineage is not (<LineageQueue>at.state).first or lineage.buffered:
            if lineage.buffered is None:
                lineage.buffered = []
            lineage.buffered.append(record)
            return None
        return self.leave(at, record, executor)

    cdef Entity leave(self, Entity at, MovingRecord record, NetExecutor executor):
        cdef Lineage lineage = record.lineage
        record.lineage = lineage.parent
        if lineage.parent is not None:
            lineage.parent.live += 1
        executor.release(lineage)
        return at.following()

    cdef Entity go_on(self, Entity at, MovingRecord flush, NetExecutor executor):
        cdef Lineage first = <Lineage>flush.rest
        cdef MovingRecord record
        cdef Entity following
        if not first.buffered:
            return None
        record = <MovingRecord>first.buffered.pop(0)
        if first.buffered:
            executor.push(at, flush)
        following = self.leave(at, record, executor)
        executor.push(following, record)
        return None

    cdef int end_lineage(self, Entity at, Lineage lineage, NetExecutor executor) except -1:
        """Remove the first lineages that have ended, and let the records of the next one leave."""
        cdef LineageQueue queue = <LineageQueue>at.state
        cdef Lineage first = queue.first
        cdef Lineage parent
        cdef MovingRecord flush
        while first is not None and first.live == 0:
            parent = first.parent
            first = first.following
            queue.first = first
            if first is None:
                queue.last = None
            if parent is not None:
                executor.release(parent)
        if first is not None and first.buffered:
            flush = new_record(None, None, None)  # a go_on() for each record that waits
            flush.rest = first
            executor.push(at, flush)
        return 0


@cython.final
cdef class Enter(NetNode):
    """The beginning of an ordered net: each record gets a lineage."""

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

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        cdef Entity region = <Entity>at.state
        cdef LineageQueue queue = <LineageQueue>region.state
        cdef Lineage lineage = lineage_in(region, record)
        if queue.first is None:
            queue.first = lineage
        else:
            queue.last.following = lineage
        queue.last = lineage
        record.lineage = lineage
        return at.following()


@cython.final
cdef class FeedbackState(EntityState):
    """The state of a feedback in an ordered net."""

    cdef bint is_busy  # a record is in the body
    cdef list again  # the records from the body, the first one last
    cdef list outside  # the records from outside
    cdef list outputs  # of the body, for the record in it

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

    def __init__(self, str path, object specialize, NetNode body):
        super().__init__(path, specialize)
        self.body = body
        self.end = OrderedFeedbackEnd(path, None)

    cdef Entity entity(self, Entity after):
        cdef Entity entity = NetNode.entity(self, after)
        entity.state = FeedbackState()
        return entity

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        cdef FeedbackState state = <FeedbackState>at.state
        state.outside.append(record)
        if not state.is_busy:
            self.next(at, executor)
        return None

    cdef int next(self, Entity at, NetExecutor executor) except -1:
        """Let records leave, until one goes into the body."""
        cdef FeedbackState state = <FeedbackState>at.state
        cdef list leaving = []
        cdef MovingRecord record
        while state.again or state.outside:
            record = <MovingRecord>(state.again.pop() if state.again else state.outside.pop(0))
            if not is_true(self.specialized(record.shape), record.values):
                leaving.append(record)
                continue
            if at.inner is None:
                at.inner = self.body.entity(self.end.entity(at))
            record.lineage = lineage_in(at, record)
            state.is_busy = True
            executor.push(past(<Entity>at.inner), record)
            break
        for record in reversed(leaving):
            executor.push(at.following(), record)
        return 0

    cdef int end_lineage(self, Entity at, Lineage lineage, NetExecutor executor) except -1:
        """End the record's passage through the body."""
        cdef FeedbackState state = <FeedbackState>at.state
        state.is_busy = False
        state.again.extend(reversed(state.outputs))
        state.outputs = []
        self.next(at, executor)
        executor.release(lineage.parent)
        return 0


@cython.final
cdef class OrderedFeedbackEnd(NetNode):
    """The end of an OrderedFeedback's body."""

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        cdef Lineage lineage = record.lineage
        record.lineage = lineage.parent
        lineage.parent.live += 1
        (<FeedbackState>at.after.state).outputs.append(record)
        executor.release(lineage)
        return None
