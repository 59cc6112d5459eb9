"""The scheduler's types, for Cython: all members, and a header that only declares the names.

Cimport a type from here to pass pointers. To use its members, cimport it from `cell`, `context` or
`worker_core`, which include its header: the compiler says so where that was forgotten. That holds for inline
functions in a `.pxd`, too, because Cython writes them into every module that cimports the file.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from callboard.core.memory.node cimport FreeList, Node, NodeCache, Parker, memory_order
from callboard.core.monitoring.actor_times cimport ActorTimes
from callboard.core.monitoring.records cimport RecordRing
from callboard.mailbox.limits cimport Limits

cdef extern from "callboard/scheduling/forward.hpp" namespace "callboard" nogil:
    enum class Outcome "callboard::Outcome"(uint8_t):
        done
        more

    ctypedef Outcome (*Run)(Cell*, Context*, uint32_t) noexcept nogil

    cdef cppclass MpscTail:
        bint push(Node* node)
        bint push_chain(Node* first, Node* last)
        bint is_idle()

    cdef cppclass MpscHead:
        Node* pop(Node*& spent)

    cdef cppclass Recorder:
        Recorder(uint64_t capacity, uint64_t serial) except +
        void note_state(char state)
        bint note_sent(uint64_t receiver, uint64_t arrow, int64_t now)
        void note_taken(uint64_t sender, uint64_t arrow, int64_t now)
        void note_lost(uint64_t sender, uint64_t arrow, int64_t now)
        bint is_due()
        RecordRing ring

    cdef cppclass Cell:
        Cell(Run run, void* owner, uint32_t flags)
        MpscTail tail
        FreeList spare
        Worker* get_affinity "affinity.load" (memory_order)
        void set_affinity "affinity.store" (Worker*, memory_order)
        uint32_t weight
        uint32_t check_interval
        void* owner
        Run run
        Limits* limits
        MpscHead head
        Cell* next
        uint64_t number
        int64_t created
        uint64_t get_messages "messages.get" ()
        uint64_t get_dispatches "dispatches.get" ()
        uint64_t get_busy_ns "busy_ns.get" ()
        uint64_t stamp
        ActorTimes* get_times "times.load" (memory_order)
        void set_times "times.store" (ActorTimes*, memory_order)
        Worker* get_ready_on "ready_on.load" (memory_order)
        bint has(uint32_t flag)
        void set(uint32_t flag)
        void clear(uint32_t flag)
        bint push_system(Node* node)
        bint has_system()
        Node* take_system()
        bint try_idle()
        bint try_wait()

    cdef cppclass ReadySet:
        void* state
        void (*put)(void* state, Cell* cell) noexcept nogil
        Cell* (*fetch)(void* state) noexcept nogil
        void (*destroy)(void* state) noexcept nogil

    cdef cppclass Token "callboard::Delegation<callboard::Cell>":
        bint has_pending()

    cdef cppclass TeamState:
        Token token
        int64_t add_waiting "waiting.fetch_add" (int64_t, memory_order)
        int64_t get_waiting "waiting.load" (memory_order)
        void set_stopping "stopping.store" (uint32_t, memory_order)
        uint32_t is_stopping "stopping.load" (memory_order)
        void set_draining "draining.store" (uint32_t, memory_order)
        uint32_t is_draining "draining.load" (memory_order)
        Parker became_idle

    cdef cppclass Inbox "callboard::Stack<callboard::Cell>":
        bint is_empty()

    cdef cppclass Worker:
        Inbox inbox
        Parker parker
        void set_stand_in "stand_in.store" (Worker*, memory_order)
        bint is_suspended()
        void hand_on()
        uint64_t get_idles "idles.load" (memory_order)
        uint64_t add_idles "idles.fetch_add" (uint64_t, memory_order)
        uint64_t get_current "current.load" (memory_order)
        int64_t get_loop_time "loop_time.load" (memory_order)
        void set_loop_time "loop_time.store" (int64_t, memory_order)
        uint64_t get_dispatches "dispatches.get" ()
        uint64_t get_handled "handled.get" ()
        ReadySet ready
        TeamState* team
        int64_t python_ready
        bint steals
        uint32_t index
        void* owner
        bint has_token
        bint timed
        bint notes_waits
        uint32_t quantum
        bint exact
        int64_t time_slice_ns
        Recorder* recorder
        int64_t started
        uint64_t get_busy_ns "busy_ns.get" ()
        void begin_idle "idle.begin" (int64_t now)
        void end_idle "idle.end" (int64_t now)
        int64_t get_idle_ns "idle.get" ()
        void put(Cell* cell)
        Cell* fetch()
        bint has_ready()
        bint take_in()
        void stop_watching()
        bint own_token_or_delegate(Cell* cell)
        bint release_token()

    cdef cppclass Spinner:
        pass

    cdef cppclass Context:
        Context()
        Spinner spinner
        Worker* worker
        uint32_t index
        Recorder* recorder
        Cell* current
        NodeCache nodes
        uint32_t depth
        bint makes_handle
        void* trace
        void* python
        int64_t dispatch_began
