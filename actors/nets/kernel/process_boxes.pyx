"""Boxes whose functions worker processes call: a process gets the values of a batch of records in one message.

The outputs enter the net in the order of the records that came to the box, one record after the other, as if the
executor had called the function.
"""

cimport cython
from libc.stdint cimport int64_t

from callboard.nets.kernel.executor cimport Entity, EntityState, NetExecutor, NetNode
from callboard.nets.kernel.leaves cimport SpecializedBox, take_output
from callboard.nets.kernel.record cimport MovingRecord, new_record

cdef class ProcessBoxNode


@cython.final
cdef class CallBatch(EntityState):
    """Records that wait for a box, or are at a process. Each knows its entity."""

    cdef readonly ProcessBoxNode box
    cdef list records
    cdef bint is_sent
    cdef Py_ssize_t passed  # the records whose outputs are in the net
    cdef list outputs  # of each record; None until there is an answer
    cdef dict errors  # by the number of the record
    cdef public Py_ssize_t tries  # that have ended with the process
    cdef readonly tuple failed  # a record, and its exception, for the run to handle

    cdef list contents(self):
        return self.records[self.passed:]

    def __len__(self):
        return len(self.records)

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
        """Return the values that the function is called with: for each parameter those of all records."""
        cdef MovingRecord record
        cdef SpecializedBox special
        cdef list rows = []
        cdef list found
        for record in self.records:
            special = <SpecializedBox>self.box.specialized(record.shape)
            if len(special.slots) == 1:
                rows.append(record.values[<Py_ssize_t>special.slots[0]])
            else:
                rows.append(tuple([record.values[<Py_ssize_t>slot] for slot in special.slots]))
        if len(special.slots) == 1:
            return [rows]
        found = [list(column) for column in zip(*rows)]
        return found

    def note_answer(self, list outputs, dict errors):
        """Note the output of each record, or the list of outputs if it is a generator's; and the exceptions."""
        self.outputs = outputs
        self.errors = errors

    def note_failure(self, error):
        """Note an exception that all records have in common."""
        self.outputs = [[] if self.box.generates else None] * len(self.records)
        self.errors = dict.fromkeys(range(len(self.records)), error)

    def halves(self, NetExecutor executor):
        """Replace it by two batches."""
        cdef Py_ssize_t middle = len(self.records) // 2
        first = new_batch(self.box, self.records[:middle], executor)
        second = new_batch(self.box, self.records[middle:], executor)
        for half in (first, second):
            (<CallBatch>half).is_sent = True
            (<CallBatch>half).tries = self.tries
        executor.running.discard(self)
        self.clear()
        return first, second

    def clear(self):
        """Drop the records: the garbage collector does not see them."""
        self.records = []
        self.passed = 0
        self.failed = None
        if self.box.pending is self:
            self.box.pending = None

    def pass_on(self, NetExecutor executor, Py_ssize_t until):
        """Pass on outputs: of one record, then of the next when these have gone as far as they go.

        Stops at a record with an exception, which is then in `failed`. Also stops when a record cannot go on because
        there are enough outputs, when calls are to be made, and when the hops are used up.
        """
        cdef ProcessBoxNode box = self.box
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
        self.box.running -= 1
        executor.elsewhere -= 1


cdef CallBatch new_batch(ProcessBoxNode box, list records, NetExecutor executor):
    cdef CallBatch batch = CallBatch.__new__(CallBatch)
    batch.box = box
    batch.records = records
    executor.running.add(batch)
    return batch


@cython.final
cdef class ProcessBoxNode(NetNode):
    """A box whose function worker processes call."""

    cdef readonly Py_ssize_t number  # of its function in the processes
    cdef readonly bint generates
    cdef bint collects  # outputs, until all of a record's are there
    cdef CallBatch pending  # the records that have not been sent
    cdef public Py_ssize_t batch_size  # the most records in a batch

    def __init__(self, str path, object specialize, Py_ssize_t number, bint generates, bint collects):
        super().__init__(path, specialize)
        self.number = number
        self.generates = generates
        self.collects = collects
        self.batch_size = 1

    cdef Entity step(self, Entity at, MovingRecord record, NetExecutor executor):
        self.specialized(record.shape)  # an error names this record, before anything is counted
        if self.pending is None:
            self.pending = new_batch(self, [], executor)
            executor.unsent.append(self)
        record.at = at
        self.pending.records.append(record)
        self.waiting += 1
        executor.elsewhere += 1
        return None

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
        self.waiting -= len(batch.records)
        self.running += len(batch.records)
        return batch

    def note_tries(self, Py_ssize_t number, int64_t spent, int64_t worst):
        """Count calls that a process has made: nanoseconds of all, and of the longest one."""
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
