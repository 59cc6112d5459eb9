"""The executor, which moves records from entity to entity, and the bases of nodes and of the states of entities.

A net is made of nodes, once. Its replicas are made of entities: data, not tasks. An executor moves one record from
entity to entity until it leaves, is kept in a cell, or waits for a box that runs elsewhere; then the next one. So a hop
is a call, and no entity has a queue. The idea is that of S-Net's run time Front (Gijsbers and Grelck, International
Journal of Parallel Programming, 2014). In the thesis, each entity has a task (Prokesch 2011, 3.2.1 and 5.4).

One thread at a time uses the executor: the worker that dispatches the run's actor.
"""

cimport cython
from libc.math cimport INFINITY

from callboard.core.asserting cimport holds
from callboard.nets.kernel.record cimport Assembler, MovingRecord, Shape, Lineage, new_record


from time import monotonic

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX


cdef class NetNode:
    """A part of a net, shared by the entities of all its replicas.

    It is specialized to each shape of records when the first one comes. An inline cache has the results.
    """

    def __init__(self, str path, object specialize):
        self.path = self.place = path
        self.specialize = specialize
        self.cache = {}

    cdef object specialized(self, Shape shape):
        """Return what `specialize` made for records of this shape."""
        if shape is self.last_shape:
            return self.last_specialized
        found = self.cache.get(shape)
        if found is None:
            found = self.cache[shape] = self.specialize(shape)
        self.last_shape = shape
        self.last_specialized = found
        return found

    cdef Entity entity(self, Entity after):
        """Make a replica whose outputs go to `after`, and return the entity that records enter it by."""
        self.alive += 1
        self.made += 1
        return new_entity(self, after)

    cdef void add_try(self, int64_t nanoseconds) noexcept:
        """Count a try of a box that has ended."""
        self.tries += 1
        self.spent += nanoseconds
        self.worst = max(self.worst, nanoseconds)

    def note_try(self, seconds):
        """Count a try of a box that runs elsewhere."""
        self.add_try(<int64_t>(seconds * 1e9))

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        """Handle a record, and return the entity that it comes to next, or None if it stops here for now."""
        raise NotImplementedError

    cdef Entity go_on(self, Entity at, MovingRecord record, NetExecutor executor):
        """Give the next output of a record whose outputs come one by one."""
        raise NotImplementedError

    cdef int end_lineage(self, Entity at, Lineage lineage, NetExecutor executor) except -1:
        """Note the end of a lineage of the ordered net that ends here."""
        raise NotImplementedError

    def __repr__(self):
        return f"<{type(self).__name__} {self.path}>"


@cython.final
@cython.trashcan(True)
@cython.freelist(256)
cdef class Entity:
    """One replica of a node."""

    cdef Entity following(self):
        """Return the entity that its outputs go to, past those that have become identities."""
        cdef Entity after = self.after
        if after is not None and after.node is None:
            while after.node is None:
                after = after.after
            self.after = after
        return after

    def __repr__(self):
        return f"<entity of {self.node!r}>"


cdef class EntityState:
    """The state of an entity, or of one call. A subclass for each kind of node with a state has its fields."""

    cdef list contents(self):
        """Return the records, calls and entities in it. Used at the end of a run."""
        return []


@cython.final
cdef class KeptRecords(EntityState):
    """The state of a synchrocell that has some of its records."""

    cdef list contents(self):
        return self.records


cdef Entity new_entity(NetNode node, Entity after):
    cdef Entity entity = Entity.__new__(Entity)
    entity.node = node
    entity.after = after
    return entity


cdef Entity past(Entity entity):
    """Return the entity, or the one that follows if it has become an identity."""
    return entity if entity.node is not None else entity.following()


cdef void dissolve(Entity entity, Entity after) noexcept:
    """Remove an entity: references to it lead to `after` from now on."""
    entity.node.alive -= 1
    entity.node = None
    entity.after = after
    entity.inner = entity.state = None


@cython.final
cdef class NetExecutor:
    """Moves records from entity to entity, depth first: a record's first output before its second.

    `failed` is called with a node, a record and the exception that the node raised for it. It raises if the run fails,
    and returns whether the record goes on.
    """

    def __cinit__(self, Shapes shapes):
        self.shapes = shapes
        self.outputs = []
        self.answered = []
        self.calls = []
        self.unsent = []
        self.running = set()
        self.touched = []
        self.cells = {}
        self.clock = monotonic
        self.max_outputs = PY_SSIZE_T_MAX
        self.max_elsewhere = PY_SSIZE_T_MAX

    # --- the stack ---------------------------------------------------------------------------------------------------

    cdef void push(self, Entity at, MovingRecord record) noexcept:
        """Push a record: it comes to `at` next."""
        record.at = at
        record.below = self.top
        self.top = record

    cdef void push_rest(self, Entity at, MovingRecord record) noexcept:
        """Push a record whose box has more outputs to give.

        If boxes run elsewhere, their outputs come in between. Then all records on the stack are moved first, so that
        none is overtaken on its way from one entity to the next.
        """
        if self.keeps_lineage:
            record.at = at
            record.below = self.rests
            self.rests = record
        else:
            self.push(at, record)

    @property
    def is_idle(self):
        """Whether the stack is empty, so that records may enter, or come back from elsewhere."""
        return self.top is None

    cpdef bint run(self, Py_ssize_t hops) except -1:
        """Move records, for about this number of hops; tell whether there are more that can be moved."""
        cdef Py_ssize_t until = self.hops + hops
        cdef MovingRecord record
        cdef Entity at
        self.until = until
        while len(self.outputs) < self.max_outputs:
            record = self.top
            if record is not None:
                self.top = record.below
            else:
                record = self.rests
                if record is None or self.elsewhere >= self.max_elsewhere:
                    return False
                self.rests = record.below
            record.below = None
            at = <Entity>record.at
            record.at = None
            if record.rest is None:
                self.move(at, record)
            else:
                self.hops += 1
                self.give_rest(at, record)
            if self.hops >= until:
                return self.top is not None or self.rests is not None
        return False

    cdef int move(self, Entity at, MovingRecord record) except -1:
        """Move a record from entity to entity as far as it goes."""
        cdef Entity here = at
        cdef NetNode node
        while here is not None:
            try:
                while here is not None:
                    at = here
                    node = at.node
                    if node is None:
                        here = at.following()
                        continue
                    self.hops += 1
                    node.passed += 1
                    if record.lineage is not None and record.lineage.trace is not None:
                        if node.is_leaf:
                            self.note(record, node, "came")
                    here = node.step(at, record, self)
            except BaseException as error:
                here = self.fail(at, record, error)
        return 0

    cdef int give_rest(self, Entity at, MovingRecord record) except -1:
        try:
            following = at.node.go_on(at, record, self)
        except BaseException as error:
            following = self.fail(at, record, error)
        return 0 if following is None else self.move(following, record)

    cdef Entity fail(self, Entity at, MovingRecord record, object error):
        """Report an error to the run; return the entity that the record goes on to, or None."""
        record.rest = record.collected = None  # its box gives nothing more
        record.spent = 0
        if self.failed(at.node, record, error):
            return at.following()
        self.ended(record)
        return None

    # --- for the run's actor -----------------------------------------------------------------------------------------

    @property
    def is_empty(self):
        """Whether no record is on its way, except at boxes that run elsewhere."""
        return self.top is None and self.rests is None

    def take(self, Assembler entry, list rows, Py_ssize_t at, Py_ssize_t window, Py_ssize_t until, object asked):
        """Let rows in, from number `at` on, and move each as far as it goes. Return the number of the next.

        Stops when `window` records are on their way, calls are to be made, there are enough outputs, or the hops are
        used up. Raises RecordError for a row that is not a record; `taken` is its number then.
        """
        cdef MovingRecord record
        self.taken = at
        while self.taken < len(rows) and self.open < window and self.top is None and not self.calls:
            if self.hops >= until or len(self.outputs) >= self.max_outputs:
                break
            row = rows[self.taken]
            record = new_record(None, None, None)
            entry.fill(record, row if type(row) is dict else entry.labelled(row, None), ())
            self.taken += 1
            self.enter(self.first, record, asked)
            self.run(until - self.hops)
        return self.taken

    def start(self, Shape empty):
        """Run the initialiser that the net begins with."""
        self.enter(self.first, new_record(empty, (), None), None)

    @property
    def kept(self):
        """The number of synchrocells that have some of their records."""
        return sum([len(since) for since in self.cells.values()])

    cdef int note_kept(self, Entity cell) except -1:
        """Note the first record of a synchrocell."""
        since = self.cells.get(cell.node.options)
        if since is None:
            since = self.cells[cell.node.options] = {}
        since[cell] = self.now
        return 0

    cdef int note_emptied(self, Entity cell) except -1:
        """Forget a synchrocell that keeps no records any more."""
        del self.cells[cell.node.options][cell]
        return 0

    def expired(self, double now):
        """Remove the records of synchrocells whose timeout is over, and return them."""
        cdef Entity cell
        found = []
        for timeout, since in self.cells.items():
            while timeout is not None and since:
                cell = next(iter(since))  # the one with the oldest first record
                if since[cell] + timeout > now:
                    break
                found += kept_in(cell)
                cell.state = None
                del since[cell]
        return found

    @property
    def next_expiry(self):
        """The earliest time at which a synchrocell gives up its records; infinity without one."""
        return min(
            [
                since[next(iter(since))] + timeout
                for timeout, since in self.cells.items()
                if timeout is not None and since
            ],
            default=INFINITY,
        )

    def end(self):
        """Drop all records, and return those for which boxes have produced no output."""
        dropped = []
        cdef MovingRecord record
        while self.top is not None or self.rests is not None:
            if self.top is None:
                self.top = self.rests
                self.rests = None
            record = self.top
            self.top = record.below
            record.below = record.at = None
            if record.shape is not None and (record.rest is None or record.collected is not None):
                dropped.append(record)
            record.rest = record.collected = None
        for since in self.cells.values():
            for cell in since:
                dropped += kept_in(<Entity>cell)
        self.cells = {}
        self.calls = []
        self.unsent = []
        self.running = set()
        self.first = None
        self.open = self.elsewhere = 0
        return dropped

    # --- lineages -----------------------------------------------------------------------------------------------------

    cdef int enter(self, Entity at, MovingRecord record, object asked) except -1:
        """Let a record into the net at `at`."""
        cdef Lineage lineage
        if self.keeps_lineage or asked is not None:
            lineage = record.lineage = Lineage.__new__(Lineage)
            lineage.live = 1
            if asked is not None:
                lineage.asked = asked
                lineage.trace = asked.steps
            self.open += 1
        self.push(at, record)
        return 0

    cdef int ended(self, MovingRecord record) except -1:
        """End a record."""
        if record.lineage is None:
            return 0
        if record.lineage.trace is not None:
            self.note(record, None, "ended")
        return self.release(record.lineage)

    cdef int release(self, Lineage lineage) except -1:
        """Remove one record from a lineage, which may end by that."""
        cdef Entity region
        lineage.live -= 1
        assert holds(lineage.live >= 0)
        if lineage.live == 0:
            if lineage.region is None:
                self.open -= 1
                if lineage.asked is not None:
                    self.answered.append(lineage.asked)
            else:
                region = <Entity>lineage.region
                region.node.end_lineage(region, lineage, self)
        return 0

    cdef int note(self, MovingRecord record, NetNode node, str what) except -1:
        """Add a step to a record's trace."""
        if record.shape is not None:
            record.lineage.trace.append((self.clock(), "" if node is None else node.path, what, record.as_dict()))
        return 0


cdef list kept_in(Entity cell):
    """Return the records that a synchrocell keeps, each once."""
    found = []
    for record in (<KeptRecords>cell.state).records:
        if record is not None and record not in found:
            found.append(record)
    return found


@cython.final
cdef class Identity(NetNode):
    """A net that passes records on unchanged. It has no entities."""

    cdef Entity entity(self, Entity after):
        return after


@cython.final
cdef class Series(NetNode):
    """Nodes in series. It has no entities except theirs."""

    cdef list parts

    def __init__(self, str path, list parts):
        super().__init__(path, None)
        self.parts = parts

    cdef Entity entity(self, Entity after):
        for part in reversed(self.parts):
            after = (<NetNode>part).entity(after)
        return after


@cython.final
cdef class Out(NetNode):
    """The end of the net."""

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        cdef Shape shape = record.shape
        cdef Py_ssize_t slot
        cdef dict output = {}
        for slot in range(len(shape.labels)):
            output[shape.labels[slot]] = record.values[slot]
        asked = None if record.lineage is None else record.lineage.asked
        if asked is None:
            executor.outputs.append(output)
        else:
            asked.outputs.append(output)
        if record.lineage is not None:
            if record.lineage.trace is not None:
                record.lineage.trace.append((executor.clock(), self.path, "left", dict(output)))
            executor.release(record.lineage)
        return None


def begin(NetNode net):
    """Make the entities of a net, and return the one by which records enter it."""
    return net.entity(new_entity(Out("/", None), None))


def records_left(NetExecutor executor):
    """Return all records that the entities of a net hold when its run ends early, each once.

    Once a box has produced an output for a record, its outputs are among them instead of the record.
    """
    cdef list left = [executor.first, *executor.running]
    cdef set seen = set()
    cdef list found = []
    cdef Entity entity
    cdef Lineage lineage
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
        elif type(each) is Lineage:
            seen.add(id(each))
            lineage = <Lineage>each
            left.append(lineage.buffered)
            left.append(lineage.following)
    return found
