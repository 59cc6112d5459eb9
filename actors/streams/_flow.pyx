"""A graph at work: programs as the stages of a flow, and the lanes that work on them.

`scheduling/flow.hpp` moves rounds; this module says what a round is: a Batch of Python rows for each
edge. All functions that stages call hold the interpreter while they run.
"""

import sys

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t

from callboard._ref cimport ActorRef
from callboard._native_ref cimport send
from callboard.core.node cimport Kind, Node, acq_rel, monotonic_ns
from callboard.native cimport Message, NativeActor
from callboard.scheduling.cell cimport Context
from callboard.scheduling.context cimport current_context
from callboard.scheduling.heuristics cimport Heuristic
from callboard.core.values cimport Output, Value, Values
from callboard.streams._program cimport Batch, Part, Program
from callboard.streams._values cimport lot_of, rows_of
from callboard.streams.native cimport NativeOperator, NativeProgram

from callboard.core.log import log
from callboard.native import NativeFailure
from callboard.streams.errors import StreamError


cdef extern from "Python.h":
    void DECREF "Py_DECREF" (PyObject*)


# --- what a stage does with a round ------------------------------------------------------------------


cdef class Work:
    """A program as a stage's operator."""

    cdef void* process(self, int64_t serial, void** inputs, Tally& tally) noexcept:
        cdef list batches = None
        cdef Batch batch = self.take(0, inputs)
        cdef int i
        if self.inputs > 1:
            batches = [batch]
            for i in range(1, self.inputs):
                batches.append(self.take(i, inputs))
            batch = whole(batches)
        if batch is None or self.is_dropped(serial):
            return NULL
        cdef object error = batch.error
        cdef list into = self.fresh(batch)
        try:
            if batches is None:
                tally.taken += len(batch.rows)
                self.program.process(batch, into)
            else:
                for i in range(self.inputs):
                    tally.taken += len((<Batch>batches[i]).rows)
                self.program.process_many(batches, into)
        except BaseException as raised:
            error = self.named(raised)
        if self.stage != NULL:
            self.stage.rest_until(monotonic_ns() + <int64_t>(self.ns_per_row * len(batch.rows)))
        return self.finish(serial, into, batch.final, error, tally)

    cdef Batch take(self, int which, void** inputs):
        """Take over what came by an input; None for an empty batch."""
        cdef Values* lot
        cdef Batch batch
        if inputs[which] == NULL:
            return None
        if not self.from_native[which]:
            batch = <Batch>inputs[which]
            Py_DECREF(batch)
            return batch
        lot = <Values*>inputs[which]
        batch = Batch(rows_of(lot), lot.first, lot.final)
        if lot.error != NULL:
            batch.error = <object>lot.error
        let_go(lot)
        return batch

    cdef int throttle(self, Stage* stage) except -1:
        rate = getattr(self.program, "rate", None)
        if rate is not None:
            self.stage = stage
            self.ns_per_row = 1e9 / rate
        return 0

    cdef bint is_dropped(self, int64_t serial) noexcept:
        """The run failed in an earlier round, or was cancelled."""
        return serial > (<Flow>self.owner).stopped_at.load()

    cdef list fresh(self, Batch batch):
        cdef list into = []
        cdef Py_ssize_t port
        for port in range(len(self.program.ports)):
            into.append(batch.follower())
        return into

    cdef object named(self, object raised):
        """The error of the run for what a program raised. The programs name what user code raised."""
        if isinstance(raised, StreamError):
            return raised
        error = StreamError(self.program.name, None, None)
        error.__cause__ = raised
        return error

    cdef void* finish(self, int64_t serial, list into, bint final, object error, Tally& tally) noexcept:
        """The output of a round: the list of its batches, given away; null if there is nothing in it."""
        cdef Batch out
        cdef bint empty = not final and error is None
        for out in into:
            tally.given += len(out.rows)
            empty = empty and not out.rows
            if error is not None:
                out.error = error
                out.final = False  # what comes after goes on to the failure, but not to the end
        if error is not None and self.edges == 0:
            (<Flow>self.owner).fail(serial, error)
        if empty or self.edges == 0:
            return NULL
        Py_INCREF(into)
        return <void*>into

    cdef void* pick(self, list into, uint32_t edge) noexcept:
        """The batch for an edge. In the order of rounds, one thread at a time."""
        cdef Py_ssize_t port = self.ports_of[edge]
        cdef Batch batch = into[port]
        if edge == 0 or <Py_ssize_t>self.ports_of[edge - 1] != port:  # edges are in the order of ports
            batch.first = self.passed[port]
            self.passed[port] = batch.first + len(batch.rows)
        if edge + 1 == self.edges:
            Py_DECREF(into)
        if not batch.rows and not batch.final and batch.error is None:
            return NULL
        if self.to_native[edge]:
            return native_batch(batch, self.program.name)
        Py_INCREF(batch)
        return <void*>batch


cdef void* native_batch(Batch batch, str name) noexcept:
    """A batch as a lot of native values."""
    cdef Values* lot = NULL
    cdef object error = batch.error
    try:
        lot = lot_of(batch.rows)
    except Exception as raised:
        error = StreamError(name, None, None)
        error.__cause__ = raised
    if lot == NULL:
        if not batch.final and error is None:
            return NULL
        lot = Values.make(0)
    lot.first = batch.first
    lot.final = batch.final and error is None
    if error is not None:
        Py_INCREF(error)
        lot.error = <void*>error
    return <void*>lot


cdef void let_go(Values* lot) noexcept:
    if lot.drop():
        if lot.error != NULL:
            Py_DECREF(<object>lot.error)
        lot.free()


cdef Batch whole(list batches):
    """Make the inputs of one round complete: empty batches in the place of None. What is said of the
    round stands in any of them; None if it is empty everywhere."""
    cdef Batch one = None
    cdef Batch batch
    cdef object error = None
    cdef Py_ssize_t i
    for batch in batches:
        if batch is not None:
            one = batch
            error = batch.error if error is None else error
    if one is None:
        return None
    for i in range(len(batches)):
        if batches[i] is None:
            batches[i] = one.follower()
    if error is not one.error:
        one = one.follower()
        one.error = error
    return one


cdef void* process_work(void* work, int64_t serial, void** inputs, Tally& tally) noexcept with gil:
    return (<Work>work).process(serial, inputs, tally)


cdef void* pick_work(void* work, void* output, uint32_t edge) noexcept with gil:
    return (<Work>work).pick(<list>output, edge)


cdef void discard_work(void* work, void* output) noexcept with gil:
    Py_DECREF(<object>output)


# --- partitioned programs: a stage that splits rounds, and one that does the parts ----------------------


cdef class Split:
    """A round on its way through a partitioned stage."""

    cdef Batch batch
    cdef dict parts            # partition -> Part
    cdef object error
    cdef AtomicCount pending


cdef class Splitter(Work):
    """The first of the two stages. Its one edge leads to the other."""

    cdef void* process(self, int64_t serial, void** inputs, Tally& tally) noexcept:
        cdef Batch batch = self.take(0, inputs)
        cdef Split split
        cdef Part part
        if batch is None or self.is_dropped(serial):
            return NULL
        split = Split.__new__(Split)
        split.batch = batch
        split.error = batch.error
        split.parts = {}
        tally.taken += len(batch.rows)
        tally.given += len(batch.rows)
        try:
            for part in self.program.split(batch):
                split.parts[part.partition] = part
        except BaseException as raised:
            split.error = self.named(raised)
        Py_INCREF(split)
        return <void*>split


cdef class Parts(Work):
    """The second of the two stages."""

    cdef uint32_t begin(self, Split split, uint32_t* partitions) noexcept:
        cdef uint32_t count = 0
        for partition in split.parts:
            partitions[count] = partition
            count += 1
        split.pending.store(count)
        return count

    cdef bint part(self, uint32_t partition, Split split, Tally& tally) noexcept:
        cdef Part part = split.parts[partition]
        tally.taken += len(part.indices)
        if not self.is_dropped(INT64_MAX):
            try:
                self.program.process_part(part)
            except BaseException as raised:
                with cython.critical_section(split):  # other parts may fail just now
                    split.error = self.named(raised)
        return split.pending.fetch_sub(1, acq_rel) == 1

    cdef void* gathered(self, int64_t serial, Split split) noexcept:
        cdef Tally given
        cdef object error = split.error
        cdef Batch batch = split.batch
        cdef list parts = list(split.parts.values())
        Py_DECREF(split)  # the arguments are borrowed
        if self.is_dropped(serial):
            return NULL
        cdef list into = self.fresh(batch)
        try:
            self.program.gather(batch, parts, into)
        except BaseException as raised:
            error = self.named(raised)
        return self.finish(serial, into, batch.final, error, given)


cdef uint32_t split_work(void* work, void* split, uint32_t* partitions) noexcept with gil:
    return (<Parts>work).begin(<Split>split, partitions)


cdef cbool part_work(void* work, uint32_t partition, void* split, Tally& tally) noexcept with gil:
    return (<Parts>work).part(partition, <Split>split, tally)


cdef void* gather_work(void* work, int64_t serial, void* split) noexcept with gil:
    return (<Parts>work).gathered(serial, <Split>split)


# --- native programs -----------------------------------------------------------------------------------


cdef class NativeWork(Work):
    """A native program as a stage's operator: see scheduling/native_stage.hpp."""


cdef void call_process(NativeOperator one, const Value* values, uint64_t count, Output* out) noexcept nogil:
    one.process(values, count, out)


cdef void call_finish(NativeOperator one, Output* out) noexcept nogil:
    one.finish(out)


cdef uint64_t call_key_of(NativeOperator one, const Value* value) noexcept nogil:
    return one.key_of(value)


cdef void* make_error(void* work, const char* reason) noexcept with gil:
    error = StreamError((<Work>work).program.name, None, None)
    error.__cause__ = NativeFailure(reason.decode("utf-8", "replace"))
    Py_INCREF(error)
    return <void*>error


cdef void retain_error(void* error) noexcept with gil:
    Py_INCREF(<object>error)


cdef void drop_error(void* error) noexcept with gil:
    Py_DECREF(<object>error)


cdef void report_error(void* work, int64_t serial, void* error) noexcept with gil:
    (<Flow>(<Work>work).owner).fail(serial, <object>error)
    Py_DECREF(<object>error)


# --- the flow ------------------------------------------------------------------------------------------


cdef class OperatorView:
    """An operator of a running graph, as heuristics and statistics see it."""

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
        # With an interpreter lock one lane runs Python, and keeps it. Without one several do, and a lane that
        # waited for another's lock (that of a reorder buffer) would keep the garbage collector waiting, too.
        self.keeps_interpreter = getattr(sys, "_is_gil_enabled", lambda: True)()
        self.stopped_at.store(INT64_MAX)
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
        self.stopped_at.store(-1)
        while self.flow.step(all_lanes, INT64_MAX):
            pass
        del self.flow
        for kept in self.kept:
            DECREF(kept)

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
        cdef LaneKinds kinds = {"native": native_lanes, "python": python_lanes, "all": all_lanes}[runs_on]
        cdef Stage* inlet
        cdef Stage* outlet
        if isinstance(program, NativeProgram):
            self.add_native(program, kinds, partitions, most_lanes, &inlet, &outlet)
        elif partitions:
            inlet = self.stage_of(Splitter.__new__(Splitter), program, kinds, StageKind.parallel, 1, 0, most_lanes)
            outlet = self.stage_of(Parts.__new__(Parts), program, kinds, StageKind.partitioned, 1, partitions,
                                   min(partitions, most_lanes))
            self.flow.connect(inlet[0], outlet[0], 0)
        elif program.kind == "stateless" and getattr(program, "rate", None) is None and most_lanes > 1:
            inlet = outlet = self.stage_of(
                Work.__new__(Work), program, kinds, StageKind.parallel, 1, 0, most_lanes)
        else:
            inlet = outlet = self.stage_of(
                Work.__new__(Work), program, kinds, StageKind.serial, len(sources), 0, 1)
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
        cdef NativeWork divider
        cdef NativeStage* native = &work.native
        self.give_work(work, program, 1)
        native.process = <void (*)(void*, const Value*, uint64_t, Output*) noexcept nogil>call_process
        native.finish = <void (*)(void*, Output*) noexcept nogil>call_finish
        native.key_of = <uint64_t (*)(void*, const Value*) noexcept nogil>call_key_of
        for operator in program.objects:
            native.objects.push_back(<void*>operator)
        native.owner = <void*>work
        native.stopped_at = &self.stopped_at
        native.is_sink = True  # until it has an edge
        native.make_error = make_error
        native.retain_error = retain_error
        native.drop_error = drop_error
        native.report = report_error
        if program.kind != "partitioned" or not partitions:
            if program.kind != "stateless":
                most_lanes = 1
            outlet[0] = &self.flow.add(
                StageKind.serial if most_lanes == 1 else StageKind.parallel, kinds, 1, 0, most_lanes,
                NativeStage.whole(native))
            inlet[0] = outlet[0]
        else:
            inlet[0] = &self.flow.add(StageKind.parallel, kinds, 1, 0, most_lanes, NativeStage.divider(native))
            self.all_stages.push_back(inlet[0])
            self.works.insert(len(self.works) - 1, work)  # for its place in operators()
            outlet[0] = &self.flow.add(StageKind.partitioned, kinds, 1, partitions,
                                       min(partitions, most_lanes), NativeStage.parts(native))
            self.flow.connect(inlet[0][0], outlet[0][0], 0)
        self.all_stages.push_back(outlet[0])
        return 0

    cdef int give_work(self, Work work, Program program, int inputs) except -1:
        work.owner = <void*>self
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
        cdef Operator what
        self.give_work(work, program, inputs)
        what.self = <void*>work
        what.process = process_work
        if not isinstance(work, Splitter):
            what.pick = pick_work
        what.discard = discard_work
        what.split = split_work
        what.part = part_work
        what.gather = gather_work
        cdef Stage* stage = &self.flow.add(kind, kinds, inputs, partitions, most_lanes, what)
        self.all_stages.push_back(stage)
        return stage

    def connect(self):
        """Make the edges, when all nodes are there."""
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

    def add_lane(self, ActorRef ref, str kind):
        """Let the actor `ref` be a lane: it calls run() when it gets a message. Answer its number."""
        self.keep(ref)
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
        return self.stopped_at.load() != INT64_MAX

    def try_admit(self, int entry, Batch batch):
        """Admit a round with a batch for an entry; -1 stands for all entries. False: no room yet.

        One caller at a time."""
        cdef size_t i
        if not self.flow.has_room():
            return False
        for i in range(self.slots.size()):
            self.slots[i] = NULL
            if entry >= 0 and entry != <int>self.entry_of[i]:
                continue
            if self.entry_to_native[i]:
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
        with nogil:
            worked = self.flow.step(all_lanes, self.flow.now())
        return worked

    def run_lane(self, uint32_t lane):
        """Work as a lane of Python stages. None: the lane is idle; else the seconds after which it wants
        another turn."""
        cdef Rest rest
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

    cdef int fail(self, int64_t serial, object error) except -1:
        """A round came to its end with an error. The run's is that of the earliest round; of one round,
        that of the latest operator, to which earlier rows came."""
        cdef object key = (serial, -self.names().index(error.operator))
        with cython.critical_section(self):
            if self.failure is None or key < self.failure[0]:
                self.failure = (key, error)
                self.stopped_at.store(serial)
        return 0

    cdef list names(self):
        cdef Work work
        return [work.program.name for work in self.works]

    def cancel(self):
        """Drop what is on its way, and all that comes."""
        self.stopped_at.store(-1)

    # --- what can be seen ----------------------------------------------------------------------------

    def operators(self):
        """The operators, in the order of the graph, as heuristics and statistics see them."""
        return [self.view(i) for i in range(<int>self.all_stages.size())]

    cdef OperatorView view(self, int i):
        cdef OperatorView view = OperatorView.__new__(OperatorView)
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
    if flow.heuristic_failed or flow.stopped_at.load() < 0:
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

    def __init__(self, Flow flow, uint32_t number):
        self.flow = flow
        self.number = number

    cdef void receive(self, Message* message) noexcept nogil:
        cdef Rest rest = self.flow.flow.run(self.number)
        if rest.reason == RestReason.turn_over:
            self.send_integer(self.own_ref, 0)
        elif rest.reason == RestReason.until:
            with gil:
                self.come_back(rest)

    cdef void come_back(self, Rest rest) noexcept:
        self.own_ref.runtime.timers.tell_after(self.own_ref, self.flow.next_turn(rest), None, 0)
