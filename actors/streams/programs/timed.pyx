"""Programs whose states wait for event time."""

from heapq import heappop, heappush

from libc.stdint cimport int64_t

from callboard.streams.programs.keyed cimport Objects
from callboard.streams.programs.program cimport Batch, Watermark, outputs_of
from callboard.streams.programs.stateful cimport Stateful, Table, born_of


cdef class Timed(Objects):
    """Objects that say when they are to be asked, so that a watermark costs nothing for all others.

    A state is made by `make(clock)`; the clock has the time of the latest watermark. Its `due` is a
    time before which its on_watermark() has nothing to do, or None if the state may be forgotten.
    `scheduled` is the program's: the time for which the state stands in its table's heap, or None.
    """

    def __init__(self, str name, make, **options):
        super().__init__(name, make, **options)
        self.table.born = {None: 0} if self.key is None else {}

    cdef object fresh(self, Table table):
        return self.make(table.clock)

    cdef int step(self, Table table, object key, object row, int64_t serial, list outs) except -1:
        state = self.state_of(table, key, serial)
        try:
            result = state.receive(row)
        finally:
            self.schedule(table, key, state)
        outs.extend(self.named(key, outputs_of(result)))
        return 0

    cdef int schedule(self, Table table, object key, object state) except -1:
        due = state.due
        if due is None:
            if self.key is not None:
                table.drop(key)
        elif state.scheduled is None or due < state.scheduled:
            state.scheduled = due
            heappush(table.heap, (due, table.born[key], key))
        return 0

    cdef list asked(self, Table table, Batch batch, Py_ssize_t at):
        cdef list answers, found
        if at == len(batch.rows):
            return Stateful.asked(self, table, batch, at)
        time = (<Watermark>batch.rows[at]).time
        if table.clock.time is not None and time <= table.clock.time:
            return []
        table.clock.time = time
        answers, found = [], []
        while table.heap and table.heap[0][0] <= time:
            due, _, key = heappop(table.heap)
            state = table.states.get(key)
            if state is not None and state.scheduled == due:  # else it stands there for another time
                state.scheduled = None
                found.append((table.born[key], key, state))
        found.sort(key=born_of)
        for born, key, state in found:
            try:
                outputs = self.named(key, outputs_of(state.on_watermark(time)))
                if outputs:
                    answers.append((born, outputs, None))
            except Exception as error:
                answers.append((born, None, error))
                if self.errors == "fail":
                    break
            self.schedule(table, key, state)
        return answers
