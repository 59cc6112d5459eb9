"""A running graph: its stages, the lanes that work on them, and the rounds of rows in flight."""

cimport cython
from cpython.ref cimport Py_INCREF
from libc.math cimport NAN, fmax
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t
from libcpp.memory cimport unique_ptr
from libcpp.utility cimport move
from libcpp.vector cimport vector

from callboard._inside.sending.actor_cell cimport await_node
from callboard._inside.sending.native_send cimport send
from callboard._inside.sending.ref cimport ActorRef
from callboard.core.asserting cimport holds
from callboard.core.clock cimport monotonic_ns
from callboard.core.memory.node cimport Kind, Node
from callboard.core.sealed cimport maker_key
from callboard.native cimport Message, NativeActor
from callboard.scheduling.context cimport Context, current_context
from callboard.scheduling.flow.flow cimport Flow, Pool, Rest, RestReason, Settings, Times
from callboard.scheduling.flow.heuristics cimport Ask, Chooser, Heuristic, OperatorView
from callboard.scheduling.flow.stage cimport Figures, LaneKinds, Stage, all_lanes, native_lanes, python_lanes
from callboard.streams.programs.program cimport Batch, Ending, Program
from callboard.streams.programs.rounds cimport native_batch, rows_among
from callboard.streams.running.reentrancy cimport call_through, help_pool, is_at_work, run_pool

from callboard.core.log import log
from callboard.core.threads.interpreter import has_gil

MOST_ROWS = 512
cdef int UNTRIED = 8  # rows at most, before a round has left
cdef int64_t SPAN_NS = 2_000_000  # that a round takes at the slowest operator: a thousand times its own cost
cdef int64_t LOOK_EVERY = 64  # rounds
cdef int TIMES_IN_PROCESSES = 4  # as many rows, where worker processes get them
cdef dict KINDS = {"native": native_lanes, "python": python_lanes, "all": all_lanes}


cdef LaneKinds lanes_of(str kind) except? 0:
    """Return the kinds of lanes that have a name."""
    return KINDS[kind]


@cython.no_gc_clear  # its end needs what it refers to
cdef class GraphFlow:
    """The stages of one run, made by a GraphBuilder, and the lanes that work on them."""

    def __cinit__(self, Heuristic heuristic, uint32_t window, double slice_s, uint32_t marker_every,
                  bint one_by_one):
        cdef Settings settings
        settings.window = window
        settings.time_slice_ns = <int64_t>(slice_s * 1e9)
        settings.activation_ns = 4 * settings.time_slice_ns
        settings.marker_every = marker_every
        settings.one_by_one = one_by_one
        settings.tries_lanes = not has_gil()  # Python functions may share objects
        self.window = window
        self.one_by_one = one_by_one
        self.ending = Ending.__new__(Ending)
        # With an interpreter lock one lane runs Python, and keeps it. Without one several do, and a lane
        # that works without Python for long would keep the collector waiting.
        self.keeps_interpreter = has_gil()
        self.heuristic = heuristic
        self.programs = {}
        self.place_numbers = {}
        self.readers = []
        self.of_stages = []
        self.time_slice_ns = settings.time_slice_ns
        self.flow = new Flow(settings)
        self.add_pool()

    def __dealloc__(self):
        del self.speed_up
        if self.flow == NULL:
            return
        # No lane is left. Rows in flight are dropped, as after a failure.
        cdef Pool* pool
        for pool in self.pools:
            pool.retire_lanes()  # the collector may have emptied their refs
        self.drop_all()
        self.flow.drain()
        self.leave_answers()
        del self.flow

    def leave_answers(self):
        """Let answers that come from now on wake no lane. Rows that wait for them are dropped."""
        cdef Program program
        for program in self.programs.values():
            program.leave()

    cdef int check(self, bint connected) except -1:
        if self.connected != connected:
            raise RuntimeError("a flow works once its graph is connected, and grows no more then")
        return 0

    cdef int keep(self, object what) except -1:
        """Keep `what` alive as long as the stages, which point to it. In tuples: the garbage collector finds
        circles through them, and does not empty them before this object's end, as it may do with a list."""
        self.kept = (what, self.kept)
        return 0

    cdef StagePlace* place(self, number) except NULL:
        return &self.places[<size_t>self.place_numbers[number]]

    cdef Pool* pool(self, size_t number) except NULL:
        if number >= self.pools.size():
            raise IndexError(f"no pool {number}; there are {self.pools.size()}")
        return self.pools[number]

    def add_pool(self, *, bint latest=False):
        """Add a pool, whose lanes choose among its operators, and return its number; pool 0 always exists.

        It has a heuristic of the run's kind; with `latest` the latest operator is next, which costs least."""
        self.check(False)
        cdef unique_ptr[Chooser] chooser
        if not latest:
            chooser.reset((<Heuristic>self.heuristic).chooser(self.time_slice_ns, <Ask>ask_heuristic, <void*>self))
        self.pools.push_back(&self.flow.add_pool(move(chooser)))
        return self.pools.size() - 1

    # --- lanes ---------------------------------------------------------------------------------------

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
        """The number of rounds that have been admitted."""
        return self.flow.admitted()

    @property
    def done(self):
        """The number of rounds that have left the graph."""
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
        """Whether another round can be admitted. Only admitting one takes the room."""
        return self.flow.has_room()

    def note_held_back(self, bint waits):
        """Note that a sender begins, or ceases, to wait for room. One sender at a time."""
        cdef int64_t now = monotonic_ns()
        with cython.critical_section(self):
            assert holds((self.held_back_since == 0) == waits)
            if not waits:
                self.held_back_for += now - self.held_back_since
            self.held_back_since = now if waits else 0

    @property
    def held_back_ns(self):
        """The time for which senders have waited for room, in nanoseconds. Any thread."""
        with cython.critical_section(self):
            if self.held_back_since == 0:
                return self.held_back_for
            return self.held_back_for + monotonic_ns() - self.held_back_since

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
            elif self.entries[i].reader != NULL:
                self.slots[i] = native_batch(batch, <Program>self.entries[i].reader)
            else:
                Py_INCREF(batch)
                self.slots[i] = <void*>batch
        assert holds(self.flow.has_room())  # which no one else takes
        self.rows_until.resize(self.window + 1)  # once: those on their way, and the latest that has left
        self.rows_until[self.flow.admitted() % (self.window + 1)] = self.rows
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
        """The seconds for which an operator that the caller's thread runs takes no input."""
        if self.caller == NULL or self.caller.not_before() == 0:
            return 0.0
        return max(0.0, (self.caller.not_before() - monotonic_ns()) / 1e9)

    def longest_ns(self):
        """Return how long a row took at the stage where it took longest, in ns of all lanes, since the last call. Rows
        are those that came into the graph. -1: none has left since. 0 where time is not measured. Any thread."""
        cdef int64_t busy, longest = 0, done = self.flow.done()
        cdef int64_t rows
        cdef size_t i
        with cython.critical_section(self):
            rows = 0 if done == 0 else self.rows_until[(done - 1) % (self.window + 1)] - self.rows_seen
            if rows <= 0:
                return -1
            self.rows_seen += rows
            self.busy_seen.resize(self.flow.stages().size())
            for i in range(self.busy_seen.size()):
                busy = self.flow.stages()[i].get().busy_ns()
                longest = max(longest, busy - self.busy_seen[i])
                self.busy_seen[i] = busy
        return longest // rows

    def wait_until_done(self, int64_t rounds, double seconds):
        """Wait until `rounds` have left the graph, for `seconds` at most. Return whether they have."""
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
        """Work as a lane of Python stages. None: the lane is idle; else the seconds after which it needs
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
        if rest.reason == RestReason.time_over:
            return 0.0
        return max(0.0, (rest.time - monotonic_ns()) / 1e9)

    def cancel(self):
        """Drop the rounds in flight and all later ones, also those for which throttled stages would rest.

        A lane that rests is to be sent a message."""
        self.drop_all()

    # --- what can be seen ----------------------------------------------------------------------------

    def operators(self):
        """The operators, in the order of the graph, as heuristics and statistics see them: what they are in
        the plan, and the views."""
        cdef StagePlace* place
        cdef OperatorView view
        cdef list views = []
        for number in sorted(self.programs):
            place = self.place(number)
            if place.divider != NULL:
                views.append((number, self.view(place.divider)))
            view = self.view(place.stage)
            if place.figures.are_there():
                view.figures = place.figures
                view.name = (<Program>self.programs[number]).name
                view.is_waited_at = place.member == 0
            views.append((number, view))
        return views

    def partitions(self, number):
        """Return the rows and the busy seconds of each partition of an operator; none of one that is not divided."""
        cdef StagePlace* place = self.place(number)
        cdef uint32_t partition
        cdef Figures figures
        cdef list found = []
        for partition in range(place.partitions):
            figures = place.keyed.figures_of(partition)
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

    def is_called(self, number):
        """Whether the caller's thread runs a program: it is on no lane."""
        return self.caller != NULL and self.place(number).fused == self.caller

    cdef void drop_all(self) noexcept:
        cdef size_t i
        with cython.critical_section(self.ending):  # a failure that is noted just now does not take it back
            self.ending.stopped_at.store(-1)
        for i in range(self.flow.stages().size()):
            self.flow.stages()[i].get().rest_until(0)
        self.ending.look_again()

    cdef OperatorView view(self, Stage* stage):
        cdef OperatorView view = OperatorView.__new__(OperatorView, maker_key())
        view.flow = self
        view.stage = stage
        view.is_waited_at = True
        view.name = (<Program>self.of_stages[stage.position]).name
        return view


@cython.final
cdef class RoundSizes:
    """The size of the next round: fewer rows, the longer a row takes where it takes longest.

    A worker is handed whole rounds. So a round of slow rows keeps one worker busy, and the others
    idle. Nothing is known at first, so the first rounds are small. A hand-over to a worker process costs
    more than one to a worker, so rounds of a run with processes are longer."""

    cdef object flow
    cdef int64_t each, look_at, size, most, span

    def __init__(self, flow, int workers, bint has_processes=False):
        cdef int times = TIMES_IN_PROCESSES if has_processes else 1
        self.flow = flow
        self.most, self.span = times * MOST_ROWS, times * SPAN_NS
        self.each = 2 * workers  # rounds of 1, of 2 and of 4 rows
        self.size = 1
        self.look_at = 1  # round that has left

    def next(self):
        """Return how many rows the next round has at most. Any sender."""
        cdef int64_t longest, done = self.flow.done
        if done == 0:
            return min(UNTRIED, 1 << min(<int64_t>self.flow.admitted // self.each, 8))
        if done >= self.look_at:
            self.look_at = done + min(done, LOOK_EVERY)
            longest = self.flow.longest_ns()
            if longest >= 0:
                self.size = self.most if longest == 0 else max(1, min(self.most, self.span // longest))
        return self.size


cdef class NativeLane(NativeActor):
    """An actor that is a lane of native stages."""

    cdef GraphFlow flow
    cdef uint32_t number

    def __init__(self, flow, uint32_t number):
        self.flow = flow()
        self.number = number

    cdef void receive(self, Message* message) noexcept nogil:
        if self.flow is None:
            return
        cdef Rest rest = self.flow.run(self.number)
        if rest.reason == RestReason.time_over:
            self.send_integer(self.own_ref, 0)
        # Not `until`: throttled stages are for lanes that hold the interpreter.


cdef object number_or_none(double number):
    return number if number == number else None


cdef void wake_lane(ActorRef ref) noexcept nogil:
    # `ref` is borrowed; the flow keeps it.
    cdef Context* context = current_context()
    cdef Node* node = await_node(ref.cell, context)
    node.kind = Kind.integer
    node.flags = 0
    node.tag = 0
    node.integer = 0
    node.second = NULL
    send(ref, node, context)


cdef Stage* ask_heuristic(void* asker, const vector[Stage*]& stages) noexcept with gil:
    """Ask a heuristic in Python for one of these stages. Null: it failed."""
    cdef GraphFlow flow = <GraphFlow>asker
    cdef OperatorView view
    cdef list views = []
    cdef size_t i
    if flow.heuristic_failed or flow.ending.stopped_at.load() < 0:
        return NULL
    try:
        for i in range(stages.size()):
            views.append(flow.view(stages[i]))
        chosen = flow.heuristic.choose(views)
        for view in views:
            if chosen is view:
                return view.stage
        problem = f"choose() returned {chosen!r}, which is not one of {views!r}"
        error = None
    except BaseException as raised:
        problem = "choose() raised"
        error = raised
    with cython.critical_section(flow):  # another lane's call may have failed, too
        if flow.heuristic_failed:
            return NULL
        flow.heuristic_failed = True
    log.error("a heuristic failed; its graph continues with the last operator in the pipeline",
              heuristic=repr(flow.heuristic), problem=problem, exc_info=error)
    return NULL
