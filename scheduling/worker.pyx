# cython: nonecheck=False
# Each dispatch runs these lines, and a worker's team and policy are never None: it has them when it is made.
"""Workers: threads that dispatch actors cooperatively.

The loop is that of LPEL (Prokesch 2011, section 4.2.1): fetch a ready actor, dispatch it, note the
outcome, take in the cells that other threads announced, and fetch again. An idle worker parks.

The interpreter is delegated: workers do not wait for it. The owner of the team's token runs Python
actors; a worker that finds it owned delegates its ready Python actor to the owner and goes on. The owner
attaches to the interpreter once for a run of Python actors, and releases the token only when nothing
was delegated to it (Das et al. 2009, principle 4.1).
"""

import os
import threading

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from callboard.core.asserting cimport holds
from callboard.core.clock cimport monotonic_ns
from callboard.core.memory.node cimport Surplus, acquire, await_interpreter, relaxed, release, seq_cst
from callboard.core.monitoring.records cimport DispatchRecord, record_exit, record_suspension, record_wait
from callboard.core.thread_state cimport set_variables
from callboard.scheduling.cell cimport Cell, dedicated_cell, python_cell, unpinned_cell, wants_token
from callboard.scheduling.context cimport Context, current_context
from callboard.scheduling.dispatching cimport dispatch
from callboard.scheduling.forward cimport Recorder
from callboard.scheduling.handle cimport Handle
from callboard.scheduling.priority cimport ReadyOrder
from callboard.scheduling.worker_registry cimport WorkerRegistry
from callboard.scheduling.stealing cimport consider_stealing, find_work, sleep, steal
from callboard.scheduling.worker_core cimport TeamState, Worker

from callboard.core.errors import CallboardError, PolicyError

cdef extern from "Python.h":
    void XDECREF "Py_XDECREF" (PyObject*)

cdef extern from "Python.h" nogil:
    PyThreadState* PyThreadState_Get()
    PyThreadState* PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState* state)

cdef extern from "sys/prctl.h" nogil:
    int PR_SET_NAME
    int prctl(int option, ...)

# The time asleep after which a worker considers a burst over. The next burst allocates its nodes again,
# which costs a few nanoseconds for each message.
cdef int64_t TIDY_NS = 10_000_000
# The number of dispatches after which the worker considers whether stealing pays, and serves the
# interpreter's requests.
cdef uint64_t CLOCK_EVERY = 64
# CPython serves its requests to a thread, to release it or to stop for the collector, only when
# Python code runs. Compiled handlers never run any, so the worker calls this now and then.
cdef object do_nothing = eval("lambda: None")
# A quantum below the default asks for dispatches that short, in a flood too.
cdef uint32_t FAIR = 64
# The records in a worker's ring: half a MB.
cdef uint64_t RECORDS = 8192


cdef object numbering = object()
cdef uint64_t recorders = 0  # ever


cdef Recorder* make_recorder() except NULL:
    global recorders
    with cython.critical_section(numbering):
        recorders += 1
        serial = recorders << 40  # more dispatches than a worker makes in a month
    return new Recorder(RECORDS, serial)


cdef WorkerThread worker_here():
    """Return the calling thread's worker, or None."""
    cdef Worker* core = current_context().worker
    return <WorkerThread>core.owner if core != NULL else None


def on_worker():
    """Tell whether the calling thread is a worker's."""
    return current_context().worker != NULL


def shares_worker_here():
    """Tell whether the calling thread is a worker's, but not that of a dedicated actor."""
    cdef Context* context = current_context()
    if context.worker == NULL:
        return False
    return context.current == NULL or not context.current.has(dedicated_cell)


cdef void serve_interpreter() noexcept nogil:
    with gil:
        do_nothing()


cdef class WorkerThread:
    """One worker. Its thread exists from start() until the team stops."""

    def __cinit__(
        self, WorkerRegistry team, ReadyOrder policy, uint32_t quantum, str name, cpu=None, bint dedicated=False
    ):
        self.core = new Worker()
        self.core.owner = <void*>self
        self.core.team = team.state
        self.core.index = len(team.workers)
        self.core.ready = policy.ready
        self.core.timed = policy.timed or team.timed
        self.core.quantum = quantum
        self.core.exact = quantum < FAIR
        self.core.time_slice_ns = <int64_t>(min(team.time_slice, 1e9) * 1e9)
        if team.monitoring != "off":
            self.core.recorder = make_recorder()
            self.core.notes_waits = team.monitoring == "workers"
        self.policy = policy
        self.team = team
        self.name = name
        self.short_name = name.encode(errors="backslashreplace")[-15:]  # the kernel's limit; debuggers show it
        self.cpu = cpu
        if not dedicated:
            team.workers.append(self)

    def __dealloc__(self):
        if self.core != NULL:
            del self.core.recorder
            del self.core

    @property
    def index(self):
        """The worker's number in its system, from 0."""
        return self.core.index

    def __repr__(self):
        return f"<{type(self).__name__} {self.name!r}, {'idle' if self.is_idle else 'at work'}>"

    @property
    def is_idle(self):
        """Whether the worker is idle: it looks for work, or is parked."""
        return self.core.get_idles(acquire) % 2 == 1

    @property
    def current_actor(self):
        """The number of the actor in its present dispatch, or 0."""
        return self.core.get_current(relaxed)

    @property
    def clock_read_at(self):
        """When the worker last read its clock, in monotonic ns.

        If messages take long, that is the beginning of the present one; else it is within the last 8
        dispatches.
        """
        return self.core.get_loop_time(relaxed)

    @property
    def dispatches(self):
        """The number of the worker's dispatches."""
        return self.core.get_dispatches()

    @property
    def handled(self):
        """The number of messages that the worker has handled."""
        return self.core.get_handled()

    @property
    def is_timed(self):
        """Whether each dispatch is measured, for monitoring or for a policy."""
        return self.core.timed

    @property
    def busy_ns(self):
        """The time spent in dispatches, in nanoseconds, if they are measured."""
        return self.core.get_busy_ns()

    @property
    def waits(self):
        """The number of times that the worker was idle."""
        return (self.core.get_idles(relaxed) - 1) // 2

    @property
    def waited_ns(self):
        """The idle time in nanoseconds, including a wait in progress."""
        return self.core.get_idle_ns()

    def take_over(self, Handle actor):
        """Move `actor` to this worker.

        The actor moves when it next becomes ready, or after its present dispatch. No message is lost or
        reordered: messages wait in the actor's mailbox, which does not move. Only its readiness moves.
        The thread that has the readiness passes it on in one place, make_ready(), to the affinity that it
        reads there: the old worker or this one. Both are workers of one team, which run as long as there
        are actors, so either will dispatch the actor. A dispatch on this worker comes after one on the
        old worker, because the readiness came from there.

        Raises PolicyError for a dedicated actor, an actor of another system, or one that runs wherever
        it is woken.
        """
        cdef Worker* affinity = actor.cell.get_affinity(relaxed)
        if affinity == NULL or affinity.team != self.core.team:
            raise PolicyError(f"{actor!r} cannot move to {self.name!r}, a worker of another system")
        if actor.cell.has(dedicated_cell):
            raise PolicyError(f"{actor!r} cannot move to {self.name!r}: it is dedicated")
        if actor.cell.has(unpinned_cell):
            raise PolicyError(
                f"{actor!r} cannot be moved to {self.name!r}: under dynamic threading it runs where it is woken")
        actor.cell.set_affinity(self.core, relaxed)

    def start(self):
        """Start the thread. A daemon: a worker that an actor blocks must not hang the interpreter.

        Raises CallboardError if the worker was started before.
        """
        if self.thread is not None:
            raise CallboardError(f"{self.name!r} was already started: a worker has one thread")
        self.thread = threading.Thread(target=self.run, name=self.name, daemon=True)
        try:
            self.thread.start()
        except BaseException:  # the process may have too many threads
            self.thread = None
            raise

    def run(self):
        """Run the worker on the calling thread until its team stops."""
        if self.runs:
            raise CallboardError(f"{self.name!r} is already running: a worker has one thread")
        self.runs = True
        prctl(PR_SET_NAME, <const char*>self.short_name)
        if self.cpu is not None:
            os.sched_setaffinity(0, {self.cpu})
        self.adopt_thread()
        cdef PyObject* variables = set_variables(PyThreadState_Get(), NULL)
        cdef PyThreadState* state = PyEval_SaveThread()
        self.loop_with(state)
        # loop_with() leaves the interpreter detached.
        PyEval_RestoreThread(state)
        if self.core.notes_waits:
            self.note(record_exit, monotonic_ns(), self.core.get_idle_ns(), (self.core.get_idles(relaxed) - 1) // 2)
        self.hand_log_over()
        assert holds(self.context.current == NULL and not self.core.has_token)
        if self.other_sleep.end != NULL:
            self.other_sleep.end(self.other_sleep.state)
        XDECREF(set_variables(state, variables))
        self.leave_thread(NULL)
        if self.is_ending:
            self.team.forget_dedicated(self)
            self.tell_drainer()
        self.team.note_end(self)

    cdef bint sweep(self) noexcept:
        """Dispatch the actors that became ready after the loop's end. False: there were none."""
        cdef Worker* other = current_context().worker
        cdef bint found = False
        self.adopt_thread()
        while self.step():
            found = True
        self.leave_thread(other)
        return found

    cdef int adopt_thread(self) except -1:
        """Make the calling thread this worker's."""
        self.context = current_context()
        self.context.worker = self.core
        self.context.index = self.core.index
        self.context.recorder = self.core.recorder
        self.context.python = <void*>PyThreadState_Get()
        return 0

    cdef void leave_thread(self, Worker* other) noexcept:
        """Give the calling thread back to the worker `other`; null: to no worker."""
        self.context.worker = other
        self.context.recorder = NULL
        if other != NULL:
            self.context.recorder = other.recorder
            self.context.index = other.index

    cdef void loop_with(self, PyThreadState* state) noexcept nogil:
        cdef Worker* core = self.core
        cdef TeamState* team = core.team
        cdef Context* context = self.context
        cdef Cell* cell
        cdef bint attached = False
        cdef uint64_t dispatches = 0
        core.started = monotonic_ns()
        core.set_loop_time(core.started, relaxed)
        core.add_idles(1, seq_cst)  # it was idle until now
        assert holds(core.get_idles(relaxed) % 2 == 0 and context.worker == core)
        while True:
            if core.is_suspended() and not team.is_stopping(acquire):
                core.stop_watching()
                core.hand_on()
                if attached:
                    PyEval_SaveThread()
                    attached = False
                self.rest()
                continue
            cell = core.fetch()
            if cell == NULL:
                if core.take_in() or (core.has_token and not core.release_token()):
                    continue
                if steal(core[0]):
                    continue
                if attached:
                    PyEval_SaveThread()
                    attached = False
                if (team.is_stopping(acquire) or self.is_ending) and core.inbox.is_empty():
                    core.stop_watching()
                    break
                self.idle()
                core.set_loop_time(monotonic_ns(), relaxed)
                continue
            if cell.has(python_cell):
                if cell.has(wants_token) and not core.own_token_or_delegate(cell):
                    continue
                if not attached:
                    await_interpreter(core.get_loop_time(relaxed))  # the end of its last idle time, if recent
                    PyEval_RestoreThread(state)
                    attached = True
                    if core.timed:
                        core.started = monotonic_ns()  # the actor is not charged for waiting for the interpreter
            elif attached:
                if core.has_token and core.python_ready == 0:
                    core.release_token()
                PyEval_SaveThread()
                attached = False
            assert holds(context.current == NULL and context.depth == 0)
            assert holds(attached == cell.has(python_cell) and (core.has_token or not cell.has(wants_token)))
            dispatch(cell, context, NULL)
            if core.recorder != NULL and core.recorder.is_due():
                self.log_is_due()
            dispatches += 1
            if dispatches % CLOCK_EVERY == 0:
                if core.steals:
                    consider_stealing(core[0], monotonic_ns())
                if attached:
                    serve_interpreter()
            core.take_in()

    cdef void idle(self) noexcept nogil:
        """Look for work for a while, then park until another thread announces some."""
        cdef Worker* core = self.core
        cdef int64_t begin = monotonic_ns()
        cdef bint has_more
        assert holds(core.get_idles(relaxed) % 2 == 0 and core.python_ready == 0 and not core.has_token)
        core.set_loop_time(begin, relaxed)
        core.begin_idle(begin)
        core.add_idles(1, release)
        self.tell_drainer()
        has_more = self.other_sleep.is_due and self.other_sleep.sleep(self.other_sleep.state)
        if not has_more and not find_work(self.context):
            self.park()
        self.end_wait(record_wait, begin, core.get_idles(relaxed) // 2)
        core.add_idles(1, seq_cst)  # before the puts to come: see stealing.hpp
        assert holds(core.get_idles(relaxed) % 2 == 0)  # it is busy again
        if has_more:
            core.stop_watching()  # first: that may be much work
            self.other_sleep.wake_up(self.other_sleep.state)

    cdef void rest(self) noexcept nogil:
        """Sleep while the worker is suspended. Hand cells that still arrive here on to its stand-in."""
        cdef Worker* core = self.core
        cdef int64_t begin = monotonic_ns()
        assert holds(core.get_idles(relaxed) % 2 == 0 and not core.has_ready() and not core.has_token)
        core.set_loop_time(begin, relaxed)
        core.begin_idle(begin)
        if self.other_sleep.is_due:
            with gil:
                self.other_sleep.end(self.other_sleep.state)
        self.context.nodes.surplus.free_all()
        while core.is_suspended() and not core.team.is_stopping(acquire):
            core.hand_on()
            core.add_idles(1, seq_cst)
            self.tell_drainer()
            if core.inbox.is_empty():
                core.parker.park()
            core.add_idles(1, seq_cst)  # before a look at the inbox: see Team.is_idle()
        self.suspensions += 1
        self.end_wait(record_suspension, begin, self.suspensions)
        core.set_loop_time(core.started, relaxed)

    cdef void end_wait(self, char kind, int64_t begin, uint64_t count) noexcept nogil:
        self.core.started = monotonic_ns()
        self.core.end_idle(self.core.started)
        if self.core.notes_waits:
            self.note(kind, self.core.started, self.core.started - begin, count)

    cdef void note(self, char kind, int64_t time, int64_t spent, uint64_t count) noexcept nogil:
        cdef DispatchRecord record
        record.kind = kind
        record.time = time
        record.spent = spent
        record.dispatch = count
        self.core.recorder.ring.write(record)

    cdef void log_is_due(self) noexcept nogil:
        with gil:
            self.hand_log_over()
        self.core.started = monotonic_ns()  # what follows is not charged for that

    cdef void hand_log_over(self) noexcept:
        """Have the records taken out, if anybody asked for them, before they are overwritten."""
        if self.core.recorder != NULL and self.team.hand_over_records is not None:
            self.team.hand_over_records(self)

    cdef void park(self) noexcept nogil:
        """Sleep until there is work. After a while, free the spare nodes that bursts left."""
        cdef Surplus* surplus = self.context.nodes.surplus
        if not surplus.is_empty():
            if sleep(self.core[0], TIDY_NS):
                return
            surplus.free_all()
        sleep(self.core[0], -1)

    cdef void tell_drainer(self) noexcept nogil:
        if self.core.team.is_draining(acquire):
            self.core.team.became_idle.unpark()

    cdef bint step(self) noexcept:
        """Dispatch one ready actor on the calling thread, which is the worker's, possibly within another
        dispatch. The interpreter is attached. False: no actor is ready."""
        assert holds(current_context() == self.context and self.context.worker == self.core)
        self.core.take_in()
        cdef Cell* cell = self.core.fetch()
        if cell == NULL:
            return False
        self.dispatch_or_delegate(cell)
        return True

    cdef bint step_only_to(self, Cell* wanted) noexcept:
        """Dispatch `wanted`. False: it is not among the first LOOK_AHEAD ready actors."""
        cdef Cell* passed[LOOK_AHEAD]
        cdef Cell* cell = NULL
        cdef int count = 0
        cdef int i
        self.core.take_in()
        if wanted.get_ready_on(relaxed) == self.core:
            while count < LOOK_AHEAD:
                cell = self.core.fetch()
                if cell == NULL or cell == wanted:
                    break
                passed[count] = cell
                count += 1
            for i in range(count):
                self.core.put(passed[i])
            if cell == wanted:
                assert holds(cell.get_ready_on(relaxed) == NULL)
                self.dispatch_or_delegate(cell)
                return True
        return False

    cdef void dispatch_or_delegate(self, Cell* cell) noexcept:
        """Dispatch a cell, perhaps within the dispatch of a native actor, which need not have the token."""
        cdef bint takes_token = cell.has(wants_token) and not self.core.has_token
        if takes_token and not self.core.own_token_or_delegate(cell):
            return
        assert holds(self.core.has_token or not cell.has(wants_token))
        self.dispatch_nested(cell)
        if takes_token and self.core.python_ready == 0:
            self.core.release_token()

    cdef void dispatch_nested(self, Cell* cell) noexcept:
        """Dispatch a cell, and restore the state of the dispatch around it, if there is one."""
        cdef Context* context = self.context
        cdef Cell* outer = context.current
        cdef int64_t outer_began = self.core.started
        cdef int64_t dispatch_began = context.dispatch_began
        cdef int64_t began = 0
        cdef PyThreadState* thread = <PyThreadState*>context.python
        assert holds(context.worker == self.core and thread == PyThreadState_Get())
        cdef PyObject* variables = set_variables(thread, NULL)
        if self.core.timed:
            began = self.core.started = monotonic_ns()
        context.depth += 1
        if cell.has(python_cell):
            dispatch(cell, context, outer)
            self.nested += 1
            if self.nested % CLOCK_EVERY == 0:
                serve_interpreter()
        else:
            with nogil:
                dispatch(cell, context, outer)
        if self.core.recorder != NULL and self.core.recorder.is_due():
            self.hand_log_over()
        XDECREF(set_variables(thread, variables))
        assert holds(context.current == outer and context.depth > 0)
        context.depth -= 1
        context.dispatch_began = dispatch_began
        if self.core.timed:  # the outer actor is not charged for the time of the inner one
            self.core.started = outer_began + (monotonic_ns() - began)
