"""A graph at work: the stages of a flow, and the lanes that work on them."""

cimport cython
from cpython.ref cimport Py_INCREF
from libc.math cimport NAN, fmax
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from callboard._inside.sending.native_send cimport send
from callboard._inside.sending.ref cimport ActorRef
from callboard.core.asserting cimport holds
from callboard.core.clock cimport monotonic_ns
from callboard.core.memory.node cimport Kind, Node
from callboard.scheduling.context cimport Context, current_context
from callboard.scheduling.flow.flow cimport Pool, Rest, RestReason, Times
from callboard.scheduling.flow.heuristics cimport OperatorView
from callboard.scheduling.flow.stage cimport Figures
from callboard.streams.programs.program cimport Batch, Program
from callboard.streams.programs.rounds cimport native_batch, rows_among
from callboard.streams.running.at_work cimport call_through, help_pool, is_at_work, run_pool
from callboard.streams.running.stages cimport GraphStages, Seat, lanes_of


@cython.no_gc_clear  # its end needs what it refers to
cdef class GraphFlow(GraphStages):
    """The stages of one run. Made by Run, which adds the graph's programs in topological order."""

    def add_lane(self, ActorRef ref, str kind, size_t pool=0, bint keeps_interpreter=True, int worker=0):
        """Let the actor `ref` be a lane of a pool: it calls run_lane() when it gets a message. Return its
        number, among the lanes of all pools. If all that it works on is Python, it may keep the interpreter.
        `worker` is the index of its worker, if the pool is the first one: see follow()."""
        self.check(True)
        cdef Lane lane
        lane.pool = self.pool(pool)
        lane.keeps_interpreter = keeps_interpreter and self.keeps_interpreter
        lane.worker = worker
        self.keep(ref)
        lane.number = lane.pool.add_lane(lanes_of(kind), <void (*)(void*) noexcept nogil>wake_lane, <void*>ref)
        self.lanes.push_back(lane)
        assert holds(lane.number < self.lanes.size())
        return self.lanes.size() - 1

    def follow(self, int level):
        """Let lanes of the first pool work if they are on one of the first `level` workers. Any thread, one at a
        time."""
        cdef uint64_t active = 0
        cdef size_t i
        for i in range(self.lanes.size()):
            if self.lanes[i].pool == self.pools[0] and self.lanes[i].worker < level:
                active |= <uint64_t>1 << self.lanes[i].number
        if active:
            with nogil:
                self.pools[0].set_active(active)

    # --- rounds --------------------------------------------------------------------------------------

    @property
    def admitted(self):
        """How many rounds have been admitted."""
        return self.flow.admitted()

    @property
    def done(self):
        """How many rounds have left the graph."""
        return self.flow.done()

    @property
    def is_stopped(self):
        """The run failed or was cancelled: further rounds are dropped."""
        return self.ending.stopped_at.load() != INT64_MAX

    @property
    def failure(self):
        """The run's failure, or None."""
        with cython.critical_section(self.ending):
            return None if self.ending.failed is None else self.ending.failed[1]

    @property
    def has_room(self):
        """Another round can be admitted. Only who admits one takes the room."""
        return self.flow.has_room()

    def try_admit(self, dict batches):
        """Admit a round with batches for some entries, by their numbers, and work on what the caller's thread
        runs. False: no room yet.

        One caller at a time."""
        cdef size_t i
        cdef Batch batch
        self.check(True)
        if not self.flow.has_room():
            return False
        for batch in batches.values():
            batch.hide()
            self.rows += rows_among(batch.rows)
        for i in range(self.slots.size()):
            batch = batches.get(self.entries[i].port)
            if batch is None:
                self.slots[i] = NULL
            elif self.entries[i].in_lots:
                self.slots[i] = native_batch(batch, "entry")
            else:
                Py_INCREF(batch)
                self.slots[i] = <void*>batch
        assert holds(self.flow.has_room())  # which nobody else takes
        self.flow.admit(self.slots.data())
        if self.caller == NULL:
            return True
        if self.caller_keeps:
            call_through(self.flow, self.caller[0])
        else:
            with nogil:
                call_through(self.flow, self.caller[0])
        return True

    @property
    def callers_rest(self):
        """For how many seconds an operator that the caller's thread runs wants no input."""
        if self.caller == NULL or self.caller.not_before() == 0:
            return 0.0
        return max(0.0, (self.caller.not_before() - monotonic_ns()) / 1e9)

    def wait_until_done(self, int64_t rounds, double seconds):
        """Wait until so many rounds have left the graph, for `seconds` at most; whether they have."""
        cdef int64_t nanoseconds = <int64_t>(seconds * 1e9)
        cdef bint enough
        with nogil:
            enough = self.flow.wait_until_done(rounds, nanoseconds)
        return enough

    def help(self, pools):
        """Work on one stage of some pools for a slice, on the calling thread; False if there is nothing to do."""
        # Without the interpreter: a stage may be native.
        cdef bint worked = False
        cdef Pool* pool
        self.check(True)
        for number in pools:
            pool = self.pool(number)
            with nogil:
                worked = help_pool(self.flow, pool[0])
            if worked:
                return True
        return False

    @property
    def is_at_work_here(self):
        """The calling thread is in the middle of an operator of this flow."""
        return is_at_work(self.flow)

    def run_lane(self, uint32_t lane):
        """Work as a lane of Python stages. None: the lane is idle; else the seconds after which it wants
        another turn."""
        cdef Rest rest
        if lane >= self.lanes.size():
            raise IndexError(f"no lane {lane}; there are {self.lanes.size()}")
        if self.lanes[lane].keeps_interpreter:
            return self.next_turn(self.run(lane))
        with nogil:
            rest = self.run(lane)
        return self.next_turn(rest)

    cdef Rest run(self, uint32_t lane) noexcept nogil:
        return run_pool(self.flow, self.lanes[lane].pool[0], self.lanes[lane].number)

    cdef object next_turn(self, Rest rest):
        if rest.reason == RestReason.idle:
            return None
        if rest.reason == RestReason.turn_over:
            return 0.0
        return max(0.0, (rest.time - monotonic_ns()) / 1e9)

    def cancel(self):
        """Drop what is on its way, and all that comes; also what throttled stages would rest before.

        A lane that rests is to be sent a message."""
        self.drop_all()

    # --- what can be seen ----------------------------------------------------------------------------

    def operators(self):
        """The operators, in the order of the graph, as heuristics and statistics see them: what they are in
        the plan, and the views."""
        cdef Seat* seat
        cdef OperatorView view
        cdef list views = []
        for number in sorted(self.programs):
            seat = self.seat(number)
            if seat.divider != NULL:
                views.append((number, self.view(seat.divider)))
            view = self.view(seat.stage)
            if seat.figures.are_there():
                view.figures = seat.figures
                view.name = (<Program>self.programs[number]).name
                view.is_waited_at = seat.member == 0
            views.append((number, view))
        return views

    def partitions(self, number):
        """Return the rows and the busy seconds of each partition of an operator; none of one that is not divided."""
        cdef Seat* seat = self.seat(number)
        cdef uint32_t partition
        cdef Figures figures
        cdef list found = []
        for partition in range(seat.partitions):
            figures = seat.keyed.figures_of(partition)
            found.append((figures.taken(), figures.busy_ns() / 1e9))
        return found

    def event_times(self):
        """Return the newest event time that is known, and for each operator that of its watermark, by what it is in
        the plan. Numbers; a datetime's is in seconds. None: not known."""
        cdef Program program
        cdef double newest = NAN
        cdef dict watermarks = {}
        for number in self.programs:
            program = <Program>self.programs[number]
            watermarks[number] = number_or_none(program.watermark.get())
            newest = fmax(newest, fmax(program.watermark.get(), program.newest.get()))
        return number_or_none(newest), watermarks

    def latest_times(self, size_t most):
        """Return times() of the latest `most` marked rounds that left."""
        cdef vector[Times] finished = self.flow.markers().latest(most)
        cdef Times one
        return [(one.serial, one.arrived, one.begun, one.left) for one in finished]

    def times(self):
        """Return the times of the latest marked rounds: (serial, arrived, begun, left), in monotonic ns."""
        cdef vector[Times] finished = self.flow.markers().finished()
        cdef Times one
        return [(one.serial, one.arrived, one.begun, one.left) for one in finished]


cdef object number_or_none(double number):
    return number if number == number else None


cdef void wake_lane(ActorRef ref) noexcept nogil:
    # `ref` is borrowed; the flow keeps it.
    cdef Context* context = current_context()
    cdef Node* node = context.nodes.take(ref.cell.spare)
    node.kind = Kind.integer
    node.flags = 0
    node.tag = 0
    node.integer = 0
    node.second = NULL
    send(ref, node, context)
