"""A graph at work: the stages of a flow, and the lanes that work on them."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport INT64_MAX, int64_t, uint32_t
from libcpp.vector cimport vector

from callboard._inside.sending.native_ref cimport send
from callboard._inside.sending.ref cimport ActorRef
from callboard.core.clock cimport monotonic_ns
from callboard.core.node cimport Kind, Node
from callboard.core.sealed cimport maker_key, only_by_runtime
from callboard.native cimport Message, NativeActor
from callboard.scheduling.cell cimport Context
from callboard.scheduling.context cimport current_context
from callboard.scheduling.flow.flow cimport (
    Chooser, FlowOf, LaneKinds, NativeStage, Partitioning, Reordering, Rest, RestReason, Settings, Stage,
    StageKind, Times, all_lanes, edge_to, native_lanes, python_lanes,
)
from callboard.scheduling.flow.heuristics cimport Heuristic
from callboard.streams.programs.program cimport Batch, Program
from callboard.streams.programs.work cimport Ending, NativeWork, Parts, Splitter, Work, native_batch
from callboard.streams.native cimport NativeProgram

from callboard.core.interpreter import has_gil
from callboard.core.log import log

cdef extern from "Python.h":
    void DECREF "Py_DECREF" (PyObject*)


cdef class OperatorView:
    """An operator of a running graph, as heuristics and statistics see it."""

    def __cinit__(self, key=None):
        only_by_runtime(key, self, "the views of operators come from a run")

    @property
    def position(self):
        """Its place in the order of the graph, from 0."""
        return self.stage.position

    @property
    def cost(self):
        """The estimated time for a row, in seconds; 0 while it is not known."""
        return self.stage.cost_ns() / 1e9

    @property
    def selectivity(self):
        """The estimated number of rows out for a row in."""
        return self.stage.selectivity()

    @property
    def queued(self):
        """About how many rows wait for it."""
        return self.stage.queued()

    @property
    def workers(self):
        """How many workers are at work on it."""
        return self.stage.lanes()

    @property
    def most_workers(self):
        """How many may be."""
        return self.stage.most_lanes

    @property
    def busy(self):
        """How long workers were at work on it, in seconds."""
        return self.stage.busy_ns() / 1e9

    @property
    def taken(self):
        """Rows in, so far."""
        return self.stage.taken()

    @property
    def given(self):
        """Rows out, so far."""
        return self.stage.given()

    def __repr__(self):
        return f"<operator {self.name!r}, {self.queued:.0f} rows wait, {self.cost * 1e6:.3g} us each>"


@cython.no_gc_clear  # its end needs what it refers to
cdef class Flow:
    """The stages of one run. Made by Run, which adds the graph's nodes in topological order."""

    def __cinit__(self, Heuristic heuristic, uint32_t window, double slice_s, uint32_t marker_every,
                  bint one_by_one, str reordering, str partitioning):
        cdef Settings settings
        settings.reordering = Reordering.locked if reordering == "locked" else Reordering.non_blocking
        settings.partitioning = (
            Partitioning.by_partition if partitioning == "partitioned"
            else Partitioning.shared if partitioning == "shared" else Partitioning.hybrid)
        settings.window = window
        settings.slice_ns = <int64_t>(slice_s * 1e9)
        settings.turn_ns = 4 * settings.slice_ns
        settings.marker_every = marker_every
        settings.one_by_one = one_by_one
        self.window = window
        self.one_by_one = one_by_one
        self.ending = Ending.__new__(Ending)
        # With an interpreter lock one lane runs Python, and keeps it. Without one several do, and a lane
        # that waited for another's lock (that of a reorder buffer) would keep the collector waiting, too.
        self.keeps_interpreter = has_gil()
        self.heuristic = heuristic
        self.works = []
        self.links = []
        self.outlet_works = []
        self.inlet_works = []
        self.entry_to_native = []
        self.entry_of = []
        self.flow = new FlowOf(settings, Chooser(
            heuristic.kind, heuristic.capacity, heuristic.window_ns, settings.slice_ns, choose, <void*>self))

    def __dealloc__(self):
        if self.flow == NULL:
            return
        # No lane is left. What is on its way is dropped, as after a failure.
        self.drop_all()
        while self.flow.step(all_lanes, INT64_MAX):
            pass
        del self.flow
        for kept in self.kept:
            DECREF(kept)

    cdef int check(self, bint connected) except -1:
        if self.connected != connected:
            raise RuntimeError("a flow works once its graph is connected, and grows no more then")
        return 0

    cdef void keep(self, object what) noexcept:
        """Let `what` live as long as the stages, which point to it: not in a list, because the garbage
        collector may empty that before this object's end."""
        Py_INCREF(what)
        self.kept.push_back(<PyObject*>what)

    # --- the graph -----------------------------------------------------------------------------------

    def add(self, Program program, list sources, str runs_on, int partitions, int most_lanes):
        """Add a node. `sources` says for each input where it comes from: (node, port), both numbers, or
        (None, entry). `runs_on` is the kind of lanes that may work on it. With `partitions` it works
        by parts."""
        self.check(False)
        cdef LaneKinds kinds = {"native": native_lanes, "python": python_lanes, "all": all_lanes}[runs_on]
        cdef Stage* inlet
        cdef Stage* outlet
        if isinstance(program, NativeProgram):
            self.add_native(program, kinds, partitions, most_lanes, &inlet, &outlet)
        elif partitions:
            inlet = self.stage_of(Splitter.__new__(Splitter), program, kinds, StageKind.parallel, 1, 0, most_lanes)
            inlet.divides = True
            outlet = self.stage_of(Parts.__new__(Parts), program, kinds, StageKind.partitioned, 1, partitions,
                                   min(partitions, most_lanes))
            self.flow.connect(inlet[0], outlet[0], 0)
        elif program.kind == "stateless" and getattr(program, "rate", None) is None and most_lanes > 1:
            inlet = outlet = self.stage_of(
                Work.__new__(Work), program, kinds, StageKind.parallel, 1, 0, most_lanes)
        else:
            inlet = outlet = self.stage_of(
                Work.__new__(Work), program, kinds, StageKind.serial, len(sources), 0, 1)
            if not self.one_by_one:  # no clock is read then
                (<Work>self.works[len(self.works) - 1]).throttle(outlet)
        for number, (node, port) in enumerate(sources):
            self.links.append((-1 if node is None else node, port, self.inlets.size(), number))
        self.inlets.push_back(inlet)
        self.outlets.push_back(outlet)
        self.outlet_works.append(self.works[len(self.works) - 1])
        self.inlet_works.append(self.works[len(self.works) - (2 if inlet != outlet else 1)])

    cdef int add_native(self, NativeProgram program, LaneKinds kinds, int partitions, int most_lanes,
                        Stage** inlet, Stage** outlet) except -1:
        cdef NativeWork work = NativeWork.__new__(NativeWork)
        cdef NativeStage* native = &work.native
        self.give_work(work, program, 1)
        work.prepare(program)
        if program.kind != "partitioned" or not partitions:
            if program.kind != "stateless":
                most_lanes = 1
            outlet[0] = &self.flow.add(
                StageKind.serial if most_lanes == 1 else StageKind.parallel, kinds, 1, 0, most_lanes,
                NativeStage.whole(native))
            inlet[0] = outlet[0]
        else:
            inlet[0] = &self.flow.add(StageKind.parallel, kinds, 1, 0, most_lanes, NativeStage.divider(native))
            inlet[0].divides = True
            self.all_stages.push_back(inlet[0])
            self.works.insert(len(self.works) - 1, work)  # for its place in operators()
            outlet[0] = &self.flow.add(StageKind.partitioned, kinds, 1, partitions,
                                       min(partitions, most_lanes), NativeStage.parts(native))
            self.flow.connect(inlet[0][0], outlet[0][0], 0)
        self.all_stages.push_back(outlet[0])
        return 0

    cdef int give_work(self, Work work, Program program, int inputs) except -1:
        work.ending = self.ending
        self.ending.positions[program.name] = len(self.works)
        work.program = program
        work.ports_of = []
        work.passed = [0] * len(program.ports)
        work.inputs = inputs
        work.from_native.resize(inputs)
        self.works.append(work)
        self.keep(work)
        return 0

    cdef Stage* stage_of(self, Work work, Program program, LaneKinds kinds, StageKind kind, int inputs,
                         int partitions, int most_lanes):
        self.give_work(work, program, inputs)
        cdef Stage* stage = &self.flow.add(kind, kinds, inputs, partitions, most_lanes, work.as_operator())
        self.all_stages.push_back(stage)
        return stage

    def connect(self):
        """Make the edges, when all nodes are there."""
        self.check(False)
        cdef Work work, reader
        for node, port, to, number in sorted(self.links):  # the edges of a node in the order of its ports
            reader = self.inlet_works[to]
            if node < 0:
                self.entry_edges.push_back(edge_to(self.inlets[to], number))
                self.entry_of.append(port)
                self.entry_to_native.append(isinstance(reader, NativeWork))
                continue
            work = self.outlet_works[node]
            work.ports_of.append(port)
            work.edges += 1
            work.to_native.push_back(isinstance(reader, NativeWork))
            if isinstance(work, NativeWork):
                (<NativeWork>work).native.edges += 1
                (<NativeWork>work).native.is_sink = False
                reader.from_native[number] = not isinstance(reader, NativeWork)
            self.flow.connect(self.outlets[node][0], self.inlets[to][0], number)
        self.slots.resize(self.entry_edges.size())
        self.flow.finish_graph(self.entry_edges)
        self.connected = True

    def add_lane(self, ActorRef ref, str kind):
        """Let the actor `ref` be a lane: it calls run() when it gets a message. Answer its number."""
        self.check(True)
        self.keep(ref)
        self.lanes += 1
        return self.flow.add_lane(
            {"native": native_lanes, "python": python_lanes, "all": all_lanes}[kind], wake_lane, <void*>ref)

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
        """What the run failed with, or None."""
        with cython.critical_section(self.ending):
            return None if self.ending.failed is None else self.ending.failed[1]

    def try_admit(self, dict batches):
        """Admit a round with batches for some entries, by their numbers. False: no room yet.

        One caller at a time."""
        cdef size_t i
        cdef Batch batch
        self.check(True)
        if not self.flow.has_room():
            return False
        for batch in batches.values():
            batch.hide()
        for i in range(self.slots.size()):
            batch = batches.get(self.entry_of[i])
            if batch is None:
                self.slots[i] = NULL
            elif self.entry_to_native[i]:
                self.slots[i] = native_batch(batch, "entry")
            else:
                Py_INCREF(batch)
                self.slots[i] = <void*>batch
        self.flow.admit(self.slots.data())
        return True

    def wait_until_done(self, int64_t rounds, double seconds):
        """Wait until so many rounds have left the graph, for `seconds` at most; whether they have."""
        cdef int64_t nanoseconds = <int64_t>(seconds * 1e9)
        cdef bint enough
        with nogil:
            enough = self.flow.wait_until_done(rounds, nanoseconds)
        return enough

    def help(self):
        """Work on one stage for a slice, on the calling thread; False if there is nothing to do."""
        # Without the interpreter: a stage may be native, and its reorder buffer have a lock, whose holder
        # wants the interpreter.
        cdef bint worked
        self.check(True)
        with nogil:
            worked = self.flow.help(all_lanes, self.flow.now())
        return worked

    @property
    def is_at_work_here(self):
        """The calling thread is in the middle of an operator of this flow."""
        return self.flow.is_at_work_here()

    def run_lane(self, uint32_t lane):
        """Work as a lane of Python stages. None: the lane is idle; else the seconds after which it wants
        another turn."""
        cdef Rest rest
        if lane >= self.lanes:
            raise IndexError(f"no lane {lane}; there are {self.lanes}")
        if self.keeps_interpreter:
            return self.next_turn(self.flow.run(lane))
        with nogil:
            rest = self.flow.run(lane)
        return self.next_turn(rest)

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

    cdef void drop_all(self) noexcept:
        cdef size_t i
        self.ending.stopped_at.store(-1)
        for i in range(self.all_stages.size()):
            self.all_stages[i].rest_until(0)

    # --- what can be seen ----------------------------------------------------------------------------

    def operators(self):
        """The operators, in the order of the graph, as heuristics and statistics see them."""
        return [self.view(i) for i in range(<int>self.all_stages.size())]

    cdef OperatorView view(self, int i):
        cdef OperatorView view = OperatorView.__new__(OperatorView, maker_key())
        view.flow = self
        view.stage = self.all_stages[i]
        view.name = (<Work>self.works[i]).program.name
        return view

    def times(self):
        """Of the latest marked rounds: (serial, arrived, begun, left), in monotonic ns."""
        cdef vector[Times] finished = self.flow.markers().finished()
        cdef Times one
        return [(one.serial, one.arrived, one.begun, one.left) for one in finished]


cdef uint32_t choose(void* owner, const uint32_t* positions, uint32_t count) noexcept with gil:
    """Ask a heuristic in Python. Beyond the last: it failed."""
    cdef Flow flow = <Flow>owner
    cdef uint32_t i
    cdef list views = []
    if flow.heuristic_failed or flow.ending.stopped_at.load() < 0:
        return count
    try:
        for i in range(count):
            views.append(flow.view(positions[i]))
        chosen = flow.heuristic.choose(views)
        for i in range(count):
            if chosen is views[i]:
                return i
        problem = f"choose() answered {chosen!r}, which is none of {views!r}"
        error = None
    except BaseException as raised:
        problem = "choose() raised"
        error = raised
    flow.heuristic_failed = True
    log.error("a heuristic failed; its graph goes on with the last operator in the pipeline",
              heuristic=repr(flow.heuristic), problem=problem, exc_info=error)
    return count


# --- lanes ---------------------------------------------------------------------------------------------


cdef void wake_lane(void* ref) noexcept nogil:
    (<void (*)(void*) noexcept nogil>send_wake)(ref)


cdef void send_wake(ActorRef ref) noexcept nogil:
    # `ref` is borrowed; the flow keeps it.
    cdef Context* context = current_context()
    cdef Node* node = context.nodes.take(ref.cell.pool)
    node.kind = Kind.integer
    node.flags = 0
    node.tag = 0
    node.integer = 0
    node.second = NULL
    send(ref, node, context)


cdef class NativeLane(NativeActor):
    """A lane that runs without the interpreter."""

    cdef Flow flow
    cdef uint32_t number

    def __init__(self, flow, uint32_t number):
        self.flow = flow()
        self.number = number

    cdef void receive(self, Message* message) noexcept nogil:
        if self.flow is None:
            return
        cdef Rest rest = self.flow.flow.run(self.number)
        if rest.reason == RestReason.turn_over:
            self.send_integer(self.own_ref, 0)
        # Not `until`: throttled stages are for lanes that hold the interpreter.
