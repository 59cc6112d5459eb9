"""The stages of a graph: one for each program, or one for several."""

cimport cython
from libc.stdint cimport int64_t, uint32_t
from libcpp.memory cimport unique_ptr
from libcpp.utility cimport move
from libcpp.vector cimport vector

from callboard.core.asserting cimport holds
from callboard.core.sealed cimport maker_key
from callboard.scheduling.flow.flow cimport Chain, Flow, Pool, Settings, most_members
from callboard.scheduling.flow.fused_stage cimport FusedStage
from callboard.scheduling.flow.heuristics cimport Ask, Chooser, Heuristic, OperatorView
from callboard.scheduling.flow.native_work cimport NativeWork
from callboard.scheduling.flow.stage cimport LaneKinds, Stage, Work, all_lanes, native_lanes, python_lanes
from callboard.streams.native cimport NativeProgram
from callboard.streams.programs.program cimport Ending, Exit, Program
from callboard.streams.programs.rounds cimport divider_of, work_of
from callboard.streams.programs.rows.answers cimport Answers, answering_work_of
from callboard.streams.programs.rows.stateful cimport Stateful

from callboard.core.log import log
from callboard.core.threads.interpreter import has_gil

LONGEST_CHAIN = most_members

cdef int MOST_WITHIN = 200  # calls of stages within each other: a thread's stack is limited

cdef dict KINDS = {"native": native_lanes, "python": python_lanes, "all": all_lanes}


cdef LaneKinds lanes_of(str kind) except? 0:
    """Return the kinds of lanes that have a name."""
    return KINDS[kind]


cdef Exit exit_to(Program reader, Py_ssize_t port):
    cdef Exit made = Exit(port, NULL)
    if reader.in_lots:
        made.reader = <void*>reader
    return made


@cython.no_gc_clear  # its end needs what it refers to
cdef class GraphStages:
    """The stages of one run, until they are connected: see GraphFlow."""

    def __cinit__(self, Heuristic heuristic, uint32_t window, double slice_s, uint32_t marker_every,
                  bint one_by_one):
        cdef Settings settings
        settings.window = window
        settings.slice_ns = <int64_t>(slice_s * 1e9)
        settings.turn_ns = 4 * settings.slice_ns
        settings.marker_every = marker_every
        settings.one_by_one = one_by_one
        settings.tries_lanes = not has_gil()  # Python functions may share what they use
        self.window = window
        self.one_by_one = one_by_one
        self.ending = Ending.__new__(Ending)
        # With an interpreter lock one lane runs Python, and keeps it. Without one several do, and a lane
        # that is long at work without Python would keep the collector waiting.
        self.keeps_interpreter = has_gil()
        self.heuristic = heuristic
        self.programs = {}
        self.places = {}
        self.readers = []
        self.of_stages = []
        self.slice_ns = settings.slice_ns
        self.flow = new Flow(settings)
        self.add_pool()

    def __dealloc__(self):
        if self.flow == NULL:
            return
        # No lane is left. Rows on their way are dropped, as after a failure.
        cdef Pool* pool
        for pool in self.pools:
            pool.retire_lanes()  # the collector may have emptied their refs
        self.drop_all()
        self.flow.drain()
        self.leave_answers()
        del self.flow

    def leave_answers(self):
        """Have answers that come from now on wake no lane. Rows that wait for them are dropped."""
        cdef Program program
        for program in self.programs.values():
            program.leave()

    cdef int check(self, bint connected) except -1:
        if self.connected != connected:
            raise RuntimeError("a flow works once its graph is connected, and grows no more then")
        return 0

    cdef int keep(self, object what) except -1:
        """Let `what` live as long as the stages, which point to it. In tuples: the garbage collector finds
        circles through them, and does not empty them before this object's end, as it may do with a list."""
        self.kept = (what, self.kept)
        return 0

    # --- the graph -----------------------------------------------------------------------------------

    def add_pool(self, *, bint latest=False):
        """Add a pool, whose lanes choose among its operators, and return its number; one is there, number 0.

        It has a heuristic of the run's kind; with `latest` the latest operator is next, which costs least."""
        self.check(False)
        cdef unique_ptr[Chooser] chooser
        if not latest:
            chooser.reset((<Heuristic>self.heuristic).chooser(self.slice_ns, <Ask>ask_heuristic, <void*>self))
        self.pools.push_back(&self.flow.add_pool(move(chooser)))
        return self.pools.size() - 1

    cdef Pool* pool(self, size_t number) except NULL:
        if number >= self.pools.size():
            raise IndexError(f"no pool {number}; there are {self.pools.size()}")
        return self.pools[number]

    def add(self, number, Program program, sources, str runs_on, int partitions, int most_lanes, size_t pool=0):
        """Add a program to a pool. `sources` says for each input where it comes from: (number of a program,
        port), or (None, entry). `runs_on` is the kind of lanes that may work on it. With `partitions` it
        works divided."""
        self.check(False)
        cdef Seat* seat
        cdef Pool* into = self.pool(pool)
        cdef LaneKinds kinds = lanes_of(runs_on)
        cdef NativeWork* native = NULL
        cdef Answers answers
        if isinstance(program, NativeProgram):
            native = &(<NativeProgram>program).native
        is_shared = program.needs_no_order and most_lanes > 1
        if len(sources) > 1 and (partitions or is_shared):
            raise ValueError(f"the program of {program.name!r} has {len(sources)} inputs")
        self.add_program(number, program, sources)
        seat = self.seat(number)
        if partitions:
            if self.one_by_one and isinstance(program, Stateful):
                (<Stateful>program).numbers = {}  # so that one seed is one interleaving
            self.of_stages.append(program)
            seat.stage = seat.keyed = &self.flow.add_keyed(
                into[0], divider_of(program) if native == NULL else native.divider(),
                work_of(program) if native == NULL else native.shares(), kinds, most_lanes, partitions)
            seat.partitions = partitions
            seat.divider = self.flow.stages()[seat.stage.position - 1].get()
        elif isinstance(program, Answers):
            answers = program
            answers.answering = &self.flow.add_answering(into[0], answering_work_of(answers), kinds)
            seat.stage = answers.answering
        elif is_shared:
            seat.stage = &self.flow.add_shared(into[0], whole_work_of(program), kinds, most_lanes)
        else:
            seat.stage = &self.flow.add_ordered(into[0], whole_work_of(program), kinds, len(sources))
        seat.pool = pool
        program.stage = seat.stage
        self.of_stages.append(program)

    def add_fused(self, members, str runs_on, size_t pool):
        """Add programs, as (number, program, sources) in the order of the graph, that one lane of a pool works on
        as one: round by round, one after the other."""
        self.check(False)
        cdef Pool* into = self.pool(pool)
        cdef LaneKinds kinds = lanes_of(runs_on)
        cdef FusedStage* fused = NULL
        cdef Program program
        cdef Seat* seat
        for number, program, sources in members:
            self.add_program(number, program, sources)
            if fused == NULL:
                fused = &self.flow.add_fused(into[0], kinds)
                self.of_stages.append(program)
            seat = self.seat(number)
            program.stage = seat.stage = seat.fused = fused
            seat.member = fused.add_member(whole_work_of(program), len(sources), program.looks_every > 0)
            seat.figures = fused.figures_of(seat.member)

    def add_chain(self, members, str runs_on, int most_lanes, size_t pool=0):
        """Add native programs that need no order, each the only reader of the one before, as one stage."""
        self.check(False)
        cdef Pool* into = self.pool(pool)
        cdef Chain* chain
        cdef LaneKinds kinds = lanes_of(runs_on)
        cdef Stage* stage = NULL
        cdef Program program
        cdef Seat* seat
        if not 0 < len(members) <= LONGEST_CHAIN or most_lanes < 1:
            raise ValueError(f"a chain has 1 to {LONGEST_CHAIN} programs and a lane, not {len(members)}, {most_lanes}")
        chain = &self.flow.make_chain(most_lanes)
        for i, (number, program, sources) in enumerate(members):
            if not isinstance(program, NativeProgram) or not program.needs_no_order or len(sources) != 1:
                raise ValueError(f"the program of {program.name!r} cannot be one of a chain")
            self.add_program(number, program, sources)
            if stage == NULL:
                if most_lanes > 1:
                    stage = &self.flow.add_shared(into[0], chain.work(), kinds, most_lanes)
                else:
                    stage = &self.flow.add_ordered(into[0], chain.work(), kinds, 1)
                self.of_stages.append(program)
            seat = self.seat(number)
            program.stage = seat.stage = stage
            seat.pool = pool
            seat.member = i
            seat.figures = chain.figures_of(i)
            chain.add_member(whole_work_of(program))

    def add_called(self, members, bint keeps_interpreter):
        """The same, for the thread that admits rounds: it works on these within try_admit()."""
        # On no lane: so their pool has none. Nobody waits there for a lock, or for a thread that wants the interpreter.
        self.add_fused(members, "all", self.add_pool(latest=True))
        self.caller = self.seat(members[0][0]).fused
        self.caller_keeps = keeps_interpreter

    cdef int add_program(self, number, Program program, sources) except -1:
        if number in self.programs:
            raise ValueError(f"there is a program number {number} already")
        if not sources:
            raise ValueError(f"the program of {program.name!r} has no inputs")
        program.enter(self.ending, number, len(sources))
        program.rests = program.ns_per_row != 0 and not self.one_by_one  # no clock is read then
        self.keep(program)
        if isinstance(program, Answers):
            self.ending.resting.append(program)
        for to, (node, port) in enumerate(sources):
            self.readers.append((-1 if node is None else node, port, number, to))
        self.programs[number] = program
        self.places[number] = self.seats.size()
        self.seats.resize(self.seats.size() + 1)
        assert holds(self.seats.size() == <size_t>len(self.programs))

    cdef Seat* seat(self, number) except NULL:
        return &self.seats[<size_t>self.places[number]]

    def connect(self):
        """Make the edges, when all programs are there."""
        cdef size_t i
        self.check(False)
        cdef Program program, reader
        cdef Seat* source
        cdef Seat* to
        cdef uint32_t number
        for node, port, reading, which in sorted(self.readers):  # a program's edges in the order of its ports
            reader = self.programs[reading]
            to = self.seat(reading)
            source = self.seat(node) if node >= 0 else NULL
            number = which
            if source != NULL:
                program = self.programs[node]
                program.exits.push_back(exit_to(reader, port))
                reader.from_lots[number] = program.in_lots and not reader.in_lots
                if source.stage == to.stage:
                    if source.member >= to.member:
                        raise ValueError(f"the program of {reader.name!r} comes before that of {program.name!r}")
                    if source.fused != NULL:  # the next of a chain is known by its place
                        source.fused.connect_within(source.member, to.member, number)
                    continue
            if to.fused != NULL:
                number = to.fused.open(to.member, number)
            if source == NULL:
                self.flow.add_entry(to.stage[0], number)
                self.entries.push_back(exit_to(reader, port))
            elif source.fused != NULL:
                source.fused.connect_out(source.member, to.stage[0], number)
            else:
                self.flow.connect(source.stage[0], to.stage[0], number)
        for program in self.programs.values():
            if isinstance(program, NativeProgram):
                (<NativeProgram>program).native.edges = program.exits.size()
        self.find_parts()
        for i in range(self.seats.size()):
            if self.seats[i].fused != NULL:
                self.seats[i].fused.finish()
        self.slots.resize(self.entries.size())
        assert holds(self.of_stages and <size_t>len(self.of_stages) == self.flow.stages().size())
        self.flow.finish_graph()
        self.connected = True

    cdef int find_parts(self) except -1:
        """Have outputs leave in parts where all programs behind take such, by the same lanes, and are few."""
        cdef Program program
        cdef Seat* seat
        cdef dict readers = {}
        cdef dict depths = {}  # (lanes, program) that takes parts: how many calls are within each other, at most
        for node, _, reading, _ in self.readers:
            readers.setdefault(node, []).append(reading)
        for number in sorted(self.programs, reverse=True):
            program = self.programs[number]
            seat = self.seat(number)
            if seat.fused != NULL or seat.keyed != NULL or isinstance(program, Answers):
                continue
            lanes = (seat.pool, seat.stage.runs_on)
            behind = [depths.get((lanes, reading), MOST_WITHIN) for reading in readers.get(number, ())]
            depth = 1 + max(behind, default=0)
            if depth > MOST_WITHIN:
                continue
            program.parts = seat.stage.gives_parts = program.may_part
            if program.from_lots.size() == 1 and program.ns_per_row == 0 and program.looks_every == 0:
                depths[lanes, number] = depth
        return 0

    # --- at work ---------------------------------------------------------------------------------

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


cdef Work whole_work_of(Program program) noexcept:
    """Return the work of a program that has one stage, and is not divided."""
    if not isinstance(program, NativeProgram):
        return work_of(program)
    cdef NativeWork* native = &(<NativeProgram>program).native
    return native.undivided() if program.partitions > 0 else native.whole()


cdef Stage* ask_heuristic(void* asker, const vector[Stage*]& stages) noexcept with gil:
    """Ask a heuristic in Python for one of these stages. Null: it failed."""
    cdef GraphStages flow = <GraphStages>asker
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
        problem = f"choose() returned {chosen!r}, which is none of {views!r}"
        error = None
    except BaseException as raised:
        problem = "choose() raised"
        error = raised
    with cython.critical_section(flow):  # another lane's call may have failed meanwhile
        if flow.heuristic_failed:
            return NULL
        flow.heuristic_failed = True
    log.error("a heuristic failed; its graph goes on with the last operator in the pipeline",
              heuristic=repr(flow.heuristic), problem=problem, exc_info=error)
    return NULL
