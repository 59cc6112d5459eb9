"""Builds a running graph from its programs: stages, each for one program or several, and the edges between them."""

cimport cython
from libc.stdint cimport uint32_t

from callboard.core.asserting cimport holds
from callboard.scheduling.flow.flow cimport Chain, Pool, most_members
from callboard.scheduling.flow.fused_stage cimport FusedStage
from callboard.scheduling.flow.native_work cimport NativeWork
from callboard.scheduling.flow.stage cimport LaneKinds, Stage, Work
from callboard.streams.native cimport NativeProgram
from callboard.streams.programs.program cimport Exit, Program
from callboard.streams.programs.rounds cimport divider_of, work_of
from callboard.streams.programs.rows.answers cimport Answers, answering_work_of
from callboard.streams.programs.rows.stateful cimport Stateful
from callboard.streams.running.flow cimport GraphFlow, StagePlace, lanes_of

LONGEST_CHAIN = most_members

cdef int MOST_WITHIN = 200  # calls of stages within each other: a thread's stack is limited

cdef Exit exit_to(Program reader, Py_ssize_t port):
    cdef Exit made = Exit(port, NULL)
    if reader.in_chunks:
        made.reader = <void*>reader
    return made


@cython.final
cdef class GraphBuilder:
    """Makes the stages of a graph from programs in topological order. One for each graph."""

    cdef GraphFlow graph

    def __cinit__(self, GraphFlow graph not None):
        self.graph = graph

    def add(self, number, Program program, sources, str runs_on, int partitions, int most_lanes, size_t pool=0):
        """Add a program to a pool. `sources` has the source of each input: (number of a program,
        port), or (None, entry). `runs_on` is the kind of lanes that may work on it. With `partitions` it
        is divided."""
        self.graph.check(False)
        cdef StagePlace* place
        cdef Pool* into = self.graph.pool(pool)
        cdef LaneKinds kinds = lanes_of(runs_on)
        cdef NativeWork* native = NULL
        cdef Answers answers
        if isinstance(program, NativeProgram):
            native = &(<NativeProgram>program).native
        is_shared = program.needs_no_order and most_lanes > 1
        if len(sources) > 1 and (partitions or is_shared):
            raise ValueError(f"the program of {program.name!r} has {len(sources)} inputs")
        self.add_program(number, program, sources)
        place = self.graph.place(number)
        if partitions:
            if self.graph.one_by_one and isinstance(program, Stateful):
                (<Stateful>program).numbers = {}  # so that one seed is one interleaving
            self.graph.of_stages.append(program)
            place.stage = place.keyed = &self.graph.flow.add_keyed(
                into[0], divider_of(program) if native == NULL else native.divider(),
                work_of(program) if native == NULL else native.partition_work(), kinds, most_lanes, partitions)
            place.partitions = partitions
            place.divider = self.graph.flow.stages()[place.stage.position - 1].get()
        elif isinstance(program, Answers):
            answers = program
            answers.answering = &self.graph.flow.add_answering(into[0], answering_work_of(answers), kinds)
            place.stage = answers.answering
        elif is_shared:
            place.stage = &self.graph.flow.add_shared(into[0], whole_work_of(program), kinds, most_lanes)
        else:
            place.stage = &self.graph.flow.add_ordered(into[0], whole_work_of(program), kinds, len(sources))
        place.pool = pool
        program.stage = place.stage
        self.graph.of_stages.append(program)

    def add_fused(self, members, str runs_on, size_t pool):
        """Add programs, as (number, program, sources) in the order of the graph, that one lane of a pool works on
        as one: round by round, one after the other."""
        self.graph.check(False)
        cdef Pool* into = self.graph.pool(pool)
        cdef LaneKinds kinds = lanes_of(runs_on)
        cdef FusedStage* fused = NULL
        cdef Program program
        cdef StagePlace* place
        for number, program, sources in members:
            self.add_program(number, program, sources)
            if fused == NULL:
                fused = &self.graph.flow.add_fused(into[0], kinds)
                self.graph.of_stages.append(program)
            place = self.graph.place(number)
            program.stage = place.stage = place.fused = fused
            place.member = fused.add_member(whole_work_of(program), len(sources), program.looks_every > 0)
            place.figures = fused.figures_of(place.member)

    def add_chain(self, members, str runs_on, int most_lanes, size_t pool=0):
        """Add native programs that need no order, each the only reader of the one before, as one stage."""
        self.graph.check(False)
        cdef Pool* into = self.graph.pool(pool)
        cdef Chain* chain
        cdef LaneKinds kinds = lanes_of(runs_on)
        cdef Stage* stage = NULL
        cdef Program program
        cdef StagePlace* place
        if not 0 < len(members) <= LONGEST_CHAIN or most_lanes < 1:
            raise ValueError(f"expected 1 to {LONGEST_CHAIN} programs and a lane, got {len(members)}, {most_lanes}")
        chain = &self.graph.flow.make_chain(most_lanes)
        for i, (number, program, sources) in enumerate(members):
            if not isinstance(program, NativeProgram) or not program.needs_no_order or len(sources) != 1:
                raise ValueError(f"the program of {program.name!r} cannot be one of a chain")
            self.add_program(number, program, sources)
            if stage == NULL:
                if most_lanes > 1:
                    stage = &self.graph.flow.add_shared(into[0], chain.work(), kinds, most_lanes)
                else:
                    stage = &self.graph.flow.add_ordered(into[0], chain.work(), kinds, 1)
                self.graph.of_stages.append(program)
            place = self.graph.place(number)
            program.stage = place.stage = stage
            place.pool = pool
            place.member = i
            place.figures = chain.figures_of(i)
            chain.add_member(whole_work_of(program))

    def add_called(self, members, bint keeps_interpreter):
        """The same, for the thread that admits rounds: it works on these within try_admit()."""
        # Their pool has no lane. So nobody waits there for a lock, or for a thread that needs the interpreter.
        self.add_fused(members, "all", self.graph.add_pool(latest=True))
        self.graph.caller = self.graph.place(members[0][0]).fused
        self.graph.caller_keeps = keeps_interpreter

    cdef int add_program(self, number, Program program, sources) except -1:
        if number in self.graph.programs:
            raise ValueError(f"there is a program number {number} already")
        if not sources:
            raise ValueError(f"the program of {program.name!r} has no inputs")
        program.enter(self.graph.ending, number, len(sources))
        program.rests = program.ns_per_row != 0 and not self.graph.one_by_one  # no clock is read then
        self.graph.keep(program)
        if isinstance(program, Answers):
            self.graph.ending.resting.append(program)
        for to, (node, port) in enumerate(sources):
            self.graph.readers.append((-1 if node is None else node, port, number, to))
        self.graph.programs[number] = program
        self.graph.place_numbers[number] = self.graph.places.size()
        self.graph.places.resize(self.graph.places.size() + 1)
        assert holds(self.graph.places.size() == <size_t>len(self.graph.programs))

    def connect(self):
        """Make the edges, when all programs have been added."""
        cdef size_t i
        self.graph.check(False)
        cdef Program program, reader
        cdef StagePlace* source
        cdef StagePlace* to
        cdef uint32_t number
        for node, port, reading, which in sorted(self.graph.readers):  # a program's edges in the order of its ports
            reader = self.graph.programs[reading]
            to = self.graph.place(reading)
            source = self.graph.place(node) if node >= 0 else NULL
            number = which
            if source != NULL:
                program = self.graph.programs[node]
                program.exits.push_back(exit_to(reader, port))
                reader.from_chunks[number] = program.in_chunks and not reader.in_chunks
                if source.stage == to.stage:
                    if source.member >= to.member:
                        raise ValueError(f"the program of {reader.name!r} comes before that of {program.name!r}")
                    if source.fused != NULL:  # the next of a chain is known by its place
                        source.fused.connect_within(source.member, to.member, number)
                    continue
            if to.fused != NULL:
                number = to.fused.open(to.member, number)
            if source == NULL:
                self.graph.flow.add_entry(to.stage[0], number)
                self.graph.entries.push_back(exit_to(reader, port))
            elif source.fused != NULL:
                source.fused.connect_out(source.member, to.stage[0], number)
            else:
                self.graph.flow.connect(source.stage[0], to.stage[0], number)
        for program in self.graph.programs.values():
            if isinstance(program, NativeProgram):
                (<NativeProgram>program).native.edges = program.exits.size()
        self.find_parts()
        for i in range(self.graph.places.size()):
            if self.graph.places[i].fused != NULL:
                self.graph.places[i].fused.finish()
        self.graph.slots.resize(self.graph.entries.size())
        assert holds(self.graph.of_stages and <size_t>len(self.graph.of_stages) == self.graph.flow.stages().size())
        self.graph.flow.finish_graph()
        self.graph.connected = True

    cdef int find_parts(self) except -1:
        """Let outputs leave in parts if all later programs accept parts, on the same lanes, and are few."""
        cdef Program program
        cdef StagePlace* place
        cdef dict readers = {}
        cdef dict depths = {}  # (lanes, program) that takes parts: how many calls are within each other, at most
        for node, _, reading, _ in self.graph.readers:
            readers.setdefault(node, []).append(reading)
        for number in sorted(self.graph.programs, reverse=True):
            program = self.graph.programs[number]
            place = self.graph.place(number)
            if place.fused != NULL or place.keyed != NULL or isinstance(program, Answers):
                continue
            lanes = (place.pool, place.stage.runs_on)
            behind = [depths.get((lanes, reading), MOST_WITHIN) for reading in readers.get(number, ())]
            depth = 1 + max(behind, default=0)
            if depth > MOST_WITHIN:
                continue
            program.parts = place.stage.gives_parts = program.may_part
            if program.from_chunks.size() == 1 and program.ns_per_row == 0 and program.looks_every == 0:
                depths[lanes, number] = depth
        return 0


cdef Work whole_work_of(Program program) noexcept:
    """Return the work of a program that has one stage, and is not divided."""
    if not isinstance(program, NativeProgram):
        return work_of(program)
    cdef NativeWork* native = &(<NativeProgram>program).native
    return native.undivided() if program.partitions > 0 else native.whole()
