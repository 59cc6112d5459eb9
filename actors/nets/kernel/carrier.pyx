"""The carrier, which takes records from entity to entity, and what nodes and entities are to it.

A net is made of nodes, once. Its replicas are made of entities: data, and not tasks. A carrier takes one record from
entity to entity until it leaves, is kept in a cell, or waits for a box that runs elsewhere; then the next one. So a hop
is a call, and no entity has a queue. The idea is that of S-Net's run time Front (Gijsbers and Grelck, International
Journal of Parallel Programming, 2014). In the thesis, each entity has a task (Prokesch 2011, 3.2.1 and 5.4).

One thread at a time has the carrier: the worker that dispatches the run's actor.
"""

cimport cython
from libc.math cimport INFINITY

from callboard.core.asserting cimport holds
from callboard.nets.kernel.record cimport Assembler, MovingRecord, Shape, Ticket, new_record


from time import monotonic

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX


cdef class NetNode:
    """A part of a net. All entities of its replicas share it, and the plans for the shapes of records."""

    def __init__(self, str path, object planner):
        self.path = self.place = path
        self.planner = planner
        self.plans = {}

    cdef object plan(self, Shape shape):
        """Return what to do with records of this shape."""
        if shape is self.last_shape:
            return self.last_plan
        found = self.plans.get(shape)
        if found is None:
            found = self.plans[shape] = self.planner(shape)
        self.last_shape = shape
        self.last_plan = found
        return found

    cdef Entity entity(self, Entity after):
        """Make a replica whose outputs go to `after`, and return the entity that records enter it by."""
        self.alive += 1
        self.made += 1
        return new_entity(self, after)

    cdef void took(self, int64_t nanoseconds) noexcept:
        """A try of a box has ended."""
        self.tries += 1
        self.spent += nanoseconds
        self.worst = max(self.worst, nanoseconds)

    def has_tried(self, seconds):
        """A try of a box that runs elsewhere has ended."""
        self.took(<int64_t>(seconds * 1e9))

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        """Handle a record; return where it goes next. None: it does not go on now."""
        raise NotImplementedError

    cdef Entity go_on(self, Entity at, MovingRecord record, Carrier carrier):
        """Give the next of a record's outputs, which were not all given at once."""
        raise NotImplementedError

    cdef int over(self, Entity at, Ticket ticket, Carrier carrier) except -1:
        """Nothing more comes of one of the tickets of an ordered net that ends here."""
        raise NotImplementedError

    def __repr__(self):
        return f"<{type(self).__name__} {self.path}>"


@cython.final
@cython.trashcan(True)
@cython.freelist(256)
cdef class Entity:
    """A node at work, in one of its replicas."""

    cdef Entity following(self):
        """Return where its outputs go, past entities that have become identities."""
        cdef Entity after = self.after
        if after is not None and after.node is None:
            while after.node is None:
                after = after.after
            self.after = after
        return after

    def __repr__(self):
        return f"<entity of {self.node!r}>"


cdef class EntityState:
    """The state of an entity. Each kind of node that has one names its fields in a subclass."""

    cdef list contents(self):
        """Return the records, calls and entities in it, for the end of a run."""
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
    """Remove an entity: what points to it leads on to `after` from now on."""
    entity.node.alive -= 1
    entity.node = None
    entity.after = after
    entity.inner = entity.state = None


@cython.final
cdef class Carrier:
    """Takes records from entity to entity, depth first: a record's first output before its second.

    `failed` is called with a node, a record and the exception that the node raised for it. It raises if the run has
    failed by it, or returns None if the record ends there.
    """

    def __cinit__(self, Shapes shapes):
        self.shapes = shapes
        self.outputs = []
        self.answered = []
        self.calls = []
        self.running = set()
        self.touched = []
        self.cells = {}
        self.clock = monotonic
        self.most_outputs = PY_SSIZE_T_MAX
        self.most_elsewhere = PY_SSIZE_T_MAX

    # --- the stack ---------------------------------------------------------------------------------------------------

    cdef void push(self, Entity at, MovingRecord record) noexcept:
        """Put a record on the stack: it comes to `at` next."""
        record.at = at
        record.below = self.top
        self.top = record

    cdef void push_rest(self, Entity at, MovingRecord record) noexcept:
        """The same, of a record whose box has more outputs to give.

        If boxes run elsewhere, what comes of them comes meanwhile. Then all records on the stack are carried first, so
        that none is overtaken on its way from one entity to the next.
        """
        if self.uses_tickets:
            record.at = at
            record.below = self.rests
            self.rests = record
        else:
            self.push(at, record)

    @property
    def is_idle(self):
        """Whether no record waits on the stack: others may enter, or come back from elsewhere."""
        return self.top is None

    def run(self, Py_ssize_t hops):
        """Carry records, for about so many hops; tell whether there are more that can be carried."""
        cdef Py_ssize_t until = self.hops + hops
        cdef MovingRecord record
        cdef Entity at
        self.until = until
        while len(self.outputs) < self.most_outputs:
            record = self.top
            if record is not None:
                self.top = record.below
            else:
                record = self.rests
                if record is None or self.elsewhere >= self.most_elsewhere:
                    return False
                self.rests = record.below
            record.below = None
            at = <Entity>record.at
            record.at = None
            if record.rest is None:
                self.carry(at, record)
            else:
                self.hops += 1
                self.give_rest(at, record)
            if self.hops >= until:
                return self.top is not None or self.rests is not None
        return False

    cdef int carry(self, Entity at, MovingRecord record) except -1:
        """Take a record from entity to entity as far as it goes."""
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
                    if record.ticket is not None and record.ticket.trace is not None:
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
        return 0 if following is None else self.carry(following, record)

    cdef Entity fail(self, Entity at, MovingRecord record, object error):
        """Hand an error to the run; return where the record goes on, if it does."""
        record.rest = record.held = None  # nothing is to come of its box
        record.spent = 0
        if self.failed(at.node, record, error):
            return at.following()
        self.ended(record)
        return None

    # --- for the run's actor -----------------------------------------------------------------------------------------

    @property
    def is_empty(self):
        """Whether no record is on its way, but for those at boxes that run elsewhere."""
        return self.top is None and self.rests is None

    def take(self, Assembler entry, list rows, Py_ssize_t at, Py_ssize_t window, Py_ssize_t until, object asked):
        """Let rows in, from number `at` on, and carry each as far as it goes. Return the number of the next.

        Stops where `window` records are on their way, calls are to be begun, there are enough outputs, or the hops are
        used up. Raises RecordError for a row that is no record; `taken` is its number then.
        """
        cdef MovingRecord record
        self.taken = at
        while self.taken < len(rows) and self.open < window and self.top is None and not self.calls:
            if self.hops >= until or len(self.outputs) >= self.most_outputs:
                break
            row = rows[self.taken]
            record = new_record(None, None, None)
            entry.fill(record, row if type(row) is dict else entry.labelled(row, None), ())
            self.taken += 1
            self.enter(self.first, record, asked)
            self.run(until - self.hops)
        return self.taken

    def start(self, Shape empty):
        """Have an initialiser run, which the net begins with."""
        self.enter(self.first, new_record(empty, (), None), None)

    @property
    def kept(self):
        """How many synchrocells have some of their records, and wait for the others."""
        return sum([len(since) for since in self.cells.values()])

    cdef int keep(self, Entity cell) except -1:
        """A synchrocell has its first record."""
        since = self.cells.get(cell.node.options)
        if since is None:
            since = self.cells[cell.node.options] = {}
        since[cell] = self.now
        return 0

    cdef int keep_no_more(self, Entity cell) except -1:
        """A synchrocell keeps nothing any more."""
        del self.cells[cell.node.options][cell]
        return 0

    def expired(self, double now):
        """Take the records out of synchrocells that have kept them for as long as their timeout says."""
        cdef Entity cell
        found = []
        for timeout, since in self.cells.items():
            while timeout is not None and since:
                cell = next(iter(since))  # the one that keeps its first record for longest
                if since[cell] + timeout > now:
                    break
                found += kept_in(cell)
                cell.state = None
                del since[cell]
        return found

    @property
    def next_expiry(self):
        """When a synchrocell is to give up its records, at the earliest; infinity if none is."""
        return min(
            [
                since[next(iter(since))] + timeout
                for timeout, since in self.cells.items()
                if timeout is not None and since
            ],
            default=INFINITY,
        )

    def end(self):
        """Drop all records, and return them, but for those that boxes have put out something for."""
        dropped = []
        cdef MovingRecord record
        while self.top is not None or self.rests is not None:
            if self.top is None:
                self.top = self.rests
                self.rests = None
            record = self.top
            self.top = record.below
            record.below = record.at = None
            if record.shape is not None and (record.rest is None or record.held is not None):
                dropped.append(record)
            record.rest = record.held = None
        for since in self.cells.values():
            for cell in since:
                dropped += kept_in(<Entity>cell)
        self.cells = {}
        self.calls = []
        self.running = set()
        self.first = None
        self.open = self.elsewhere = 0
        return dropped

    # --- tickets -----------------------------------------------------------------------------------------------------

    cdef int enter(self, Entity at, MovingRecord record, object asked) except -1:
        """Have a record enter the net at `at`."""
        cdef Ticket ticket
        if self.uses_tickets or asked is not None:
            ticket = record.ticket = Ticket.__new__(Ticket)
            ticket.live = 1
            if asked is not None:
                ticket.asked = asked
                ticket.trace = asked.steps
            self.open += 1
        self.push(at, record)
        return 0

    cdef int ended(self, MovingRecord record) except -1:
        """A record has come to its end."""
        if record.ticket is None:
            return 0
        if record.ticket.trace is not None:
            self.note(record, None, "ended")
        return self.release(record.ticket)

    cdef int release(self, Ticket ticket) except -1:
        """One less has this ticket."""
        cdef Entity region
        ticket.live -= 1
        assert holds(ticket.live >= 0)
        if ticket.live == 0:
            if ticket.region is None:
                self.open -= 1
                if ticket.asked is not None:
                    self.answered.append(ticket.asked)
            else:
                region = <Entity>ticket.region
                region.node.over(region, ticket, self)
        return 0

    cdef int note(self, MovingRecord record, NetNode node, str what) except -1:
        """Write in a record's trace what happened to it."""
        if record.shape is not None:
            record.ticket.trace.append((self.clock(), "" if node is None else node.path, what, record.as_dict()))
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
    """A net that hands records on as they are. It has no entities."""

    cdef Entity entity(self, Entity after):
        return after


@cython.final
cdef class Series(NetNode):
    """Nodes in series. It has no entities of its own."""

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

    cdef Entity step(self, Entity at, MovingRecord record, Carrier carrier):
        cdef Shape shape = record.shape
        cdef Py_ssize_t slot
        cdef dict output = {}
        for slot in range(len(shape.labels)):
            output[shape.labels[slot]] = record.values[slot]
        asked = None if record.ticket is None else record.ticket.asked
        if asked is None:
            carrier.outputs.append(output)
        else:
            asked.outputs.append(output)
        if record.ticket is not None:
            if record.ticket.trace is not None:
                record.ticket.trace.append((carrier.clock(), self.path, "left", dict(output)))
            carrier.release(record.ticket)
        return None


def begin(NetNode net):
    """Make the entities of a net, and return the one by which records enter it."""
    return net.entity(new_entity(Out("/", None), None))
