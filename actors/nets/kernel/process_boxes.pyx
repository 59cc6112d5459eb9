"""Boxes that worker processes or workers call: these get the values of a batch of records in one message.

The outputs enter the net in the order of the records that came to the box, one record after the other, as if the
executor had called the function.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t

from collections import deque

from callboard.nets.kernel.executor cimport Entity, EntityState, NetExecutor
from callboard.nets.kernel.leaves cimport BoxNode, SpecializedBox, take_output
from callboard.nets.kernel.record cimport MovingRecord, new_record

cdef class CallBatch
cdef class ProcessBoxNode


@cython.final
cdef class CallQueue:
    """The records of a box that wait to be called elsewhere, and the batches whose turn to be passed on has not come.

    A plain box has one. A box whose replicas have states has several, among which they are divided.
    """

    cdef readonly ProcessBoxNode box
    cdef readonly Py_ssize_t place  # its number; with processes, that of the process among those of the box's states
    cdef CallBatch pending  # the records that have not been sent
    cdef readonly object sent  # batches, in the order of their records
    cdef public Py_ssize_t batch_size  # the most records in a batch

    @property
    def waiting(self):
        """The number of records that have not been sent."""
        return 0 if self.pending is None else len(self.pending.records)

    @property
    def is_at_work(self):
        """Whether a batch has no answer."""
        return any([not (<CallBatch>batch).is_answered for batch in self.sent])

    def next_batch(self, NetExecutor executor, Py_ssize_t most):
        """Return a batch of the records that have waited longest."""
        cdef CallBatch waiting = self.pending
        cdef CallBatch batch = waiting
        if len(waiting.records) <= most:
            self.pending = None
        else:
            batch = new_batch(self, waiting.records[:most], executor)
            del waiting.records[:most]
        batch.is_sent = True
        self.sent.append(batch)
        self.box.waiting -= len(batch.records)
        self.box.running += len(batch.records)
        return batch

    def divide(self, CallBatch batch, NetExecutor executor):
        """Replace a batch by two."""
        cdef Py_ssize_t middle = len(batch.records) // 2
        cdef Py_ssize_t at = self.sent.index(batch)
        cdef CallBatch half
        halves = new_batch(self, batch.records[:middle], executor), new_batch(self, batch.records[middle:], executor)
        del self.sent[at]
        for half in reversed(halves):
            half.is_sent = True
            half.tries = batch.tries
            self.sent.insert(at, half)
        executor.running.discard(batch)
        batch.clear()
        return halves

    def take_back(self, CallBatch batch, NetExecutor executor):
        """Have the records of the latest batch wait again, before the others."""
        cdef Py_ssize_t number = len(batch.records)
        if self.pending is None:
            self.pending = new_batch(self, [], executor)
        self.pending.records[:0] = batch.records
        self.sent.pop()
        self.box.waiting += number
        self.box.running -= number
        executor.running.discard(batch)
        batch.clear()


@cython.final
cdef class CallBatch(EntityState):
    """Records that wait for a box, or are at a process. Each knows its entity."""

    cdef readonly CallQueue queue
    cdef list records
    cdef bint is_sent
    cdef Py_ssize_t passed  # the records whose outputs are in the net
    cdef list outputs  # of each record; None until there is an answer
    cdef dict errors  # by the number of the record
    cdef public Py_ssize_t tries  # that have ended with the process
    cdef readonly tuple failed  # a record, and its exception, for the run to handle
    cdef readonly object lost  # why the state that the records are for is lost

    cdef list contents(self):
        return self.records[self.passed:]

    def __len__(self):
        return len(self.records)

    @property
    def box(self):
        """The box."""
        return self.queue.box

    @property
    def record(self):
        """The next record to be passed on."""
        return self.records[self.passed]

    @property
    def size(self):
        """The number of records at work."""
        return len(self.records) - self.passed if self.is_sent else 0

    @property
    def is_answered(self):
        """Whether the outputs are there."""
        return self.outputs is not None

    @property
    def is_done(self):
        """Whether nothing of it is left to be passed on."""
        return self.failed is None and self.passed == len(self.records)

    def columns(self):
        """Return the values that the function is called with: for each parameter those of all records.

        The first parameter of a function of a replica is the number of the replica, or its object.
        """
        cdef ProcessBoxNode box = self.queue.box
        cdef MovingRecord record
        cdef SpecializedBox special
        cdef list rows = []
        cdef list found
        for record in self.records:
            special = <SpecializedBox>box.specialized(record.shape)
            if len(special.slots) == 1:
                rows.append(record.values[<Py_ssize_t>special.slots[0]])
            else:
                rows.append(tuple([record.values[<Py_ssize_t>slot] for slot in special.slots]))
        found = [rows] if len(special.slots) == 1 else [list(column) for column in zip(*rows)]
        if box.has_state:
            found.insert(0, [(<Entity>(<MovingRecord>each).at).state for each in self.records])
        return found

    def note_answer(self, list outputs, dict errors):
        """Note the output of each record, or the list of outputs if it is a generator's; and the exceptions."""
        self.outputs = outputs
        self.errors = errors

    def note_failure(self, error):
        """Note an exception that all records have in common."""
        self.outputs = [[] if self.queue.box.generates else None] * len(self.records)
        self.errors = dict.fromkeys(range(len(self.records)), error)

    def note_lost(self, error):
        """Note why the state is lost, for the run to handle when it is the batch's turn."""
        self.note_failure(error)
        self.lost = error

    def clear(self):
        """Drop the records: the garbage collector does not see them."""
        self.records = []
        self.passed = 0
        self.failed = None
        if self.queue.pending is self:
            self.queue.pending = None

    def pass_on(self, NetExecutor executor, Py_ssize_t until):
        """Pass on outputs: of one record, then of the next when these have gone as far as they go.

        Stops at a record with an exception, which is then in `failed`. Also stops when a record cannot go on because
        there are enough outputs, when calls are to be made, and when the hops are used up.
        """
        cdef ProcessBoxNode box = self.queue.box
        cdef MovingRecord record
        while self.passed < len(self.records) and executor.top is None and not executor.calls:
            if executor.hops >= until:
                return
            record = <MovingRecord>self.records[self.passed]
            error = self.errors.get(self.passed) if self.errors else None
            if box.generates:
                error = box.pass_many(executor, record, <list>self.outputs[self.passed], error)
            elif error is None:
                error = box.pass_one(executor, record, self.outputs[self.passed])
            if error is not None:
                self.failed = record, error
                return
            self.go_on(executor)
            executor.run(until - executor.hops)

    def end_failed(self, NetExecutor executor, bint goes_on):
        """Have the record that failed end, or go on as it is now."""
        cdef MovingRecord record = <MovingRecord>self.failed[0]
        cdef Entity at = <Entity>record.at
        self.failed = None
        self.go_on(executor)
        if goes_on:
            executor.push(at.following(), record)
        else:
            executor.ended(record)

    cdef void go_on(self, NetExecutor executor) noexcept:
        """Go on to the next record."""
        self.records[self.passed] = None
        self.passed += 1
        self.queue.box.running -= 1
        executor.elsewhere -= 1


cdef Py_ssize_t hash_of(Entity at) noexcept:
    """Return a hash of an entity's address. It is not negative."""
    return ((<uint64_t><void*>at >> 4) * <uint64_t>0x9E3779B97F4A7C15) >> 33


cdef CallBatch new_batch(CallQueue queue, list records, NetExecutor executor):
    cdef CallBatch batch = CallBatch.__new__(CallBatch)
    batch.queue = queue
    batch.records = records
    executor.running.add(batch)
    return batch


@cython.final
cdef class ProcessBoxNode(BoxNode):
    """A box that worker processes or workers call; or the executor itself, while `is_here`.

    A box with a factory has a state in each replica. A replica's records go to one process, which makes its function.
    With `shares_objects`, the executor makes it, and any worker calls it, one at a time.
    """

    cdef readonly bint has_state
    cdef bint shares_objects
    cdef public bint is_here
    cdef public object choice  # whether it is here; None: it never is
    cdef list queues
    cdef Py_ssize_t replicas  # that have got records

    def __init__(
        self, str path, object specialize, object function, object factory, bint generates, bint collects
    ):
        super().__init__(path, specialize, function, factory, generates, collects)
        self.has_state = factory is not None
        self.divide(1)

    def divide(self, Py_ssize_t number, *, bint shares_objects=False):
        """Divide the replicas among this number of queues, before there are any."""
        cdef CallQueue queue
        self.shares_objects = shares_objects
        self.queues = []
        for place in range(number):
            queue = CallQueue.__new__(CallQueue)
            queue.box = self
            queue.place = place
            queue.sent = deque()
            queue.batch_size = 1
            self.queues.append(queue)

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        cdef CallQueue queue
        cdef Py_ssize_t number
        if self.is_here and self.waiting == 0 and self.running == 0:
            return BoxNode.step(self, at, record, executor)
        self.specialized(record.shape)  # an error names this record, before anything is counted
        if not self.has_state:
            queue = <CallQueue>self.queues[0]
        else:
            if at.state is None:
                at.state = self.factory() if self.shares_objects else self.replicas
                self.replicas += 1
            number = hash_of(at) if self.shares_objects else <Py_ssize_t>at.state
            queue = <CallQueue>self.queues[number % len(self.queues)]
        if queue.pending is None:
            queue.pending = new_batch(queue, [], executor)
            executor.unsent.append(queue)
        record.at = at
        queue.pending.records.append(record)
        self.waiting += 1
        executor.elsewhere += 1
        return None

    def note_tries(self, Py_ssize_t number, int64_t spent, int64_t worst):
        """Count calls that were made elsewhere: nanoseconds of all, and of the longest one."""
        self.calls += number
        self.tries += number
        self.spent += spent
        self.worst = max(self.worst, worst)

    cdef object pass_one(self, NetExecutor executor, MovingRecord record, object output):
        """Pass on a record's output, or return an exception."""
        cdef Entity at = <Entity>record.at
        if output is None:
            record.at = None
            executor.ended(record)
            return None
        try:
            take_output(record, <SpecializedBox>self.specialized(record.shape), output, record.values)
        except Exception as error:
            return error
        executor.push(at.following(), record)
        return None

    cdef object pass_many(self, NetExecutor executor, MovingRecord record, list values, object error):
        """Pass on a record's outputs, up to the first invalid one; return its exception, or that of the function."""
        cdef SpecializedBox special = <SpecializedBox>self.specialized(record.shape)
        cdef Entity at = <Entity>record.at
        cdef MovingRecord output
        cdef list outputs = []
        for value in values:
            output = new_record(None, None, record.lineage)
            try:
                take_output(output, special, value, record.values)
            except Exception as raised:
                error = raised
                break
            outputs.append(output)
        if error is not None and self.collects:
            return error
        if record.lineage is not None:
            record.lineage.live += len(outputs)
        for output in reversed(outputs):
            executor.push(at.following(), output)
        if error is None:
            if not outputs:
                executor.ended(record)
            elif record.lineage is not None:
                executor.release(record.lineage)
        return error
