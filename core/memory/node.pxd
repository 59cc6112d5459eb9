from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef extern from "callboard/core/atomics.hpp" namespace "callboard" nogil:
    cdef cppclass memory_order:
        pass

    const memory_order relaxed
    const memory_order acquire
    const memory_order release
    const memory_order acq_rel
    const memory_order seq_cst

    void relax()

cdef extern from "callboard/core/memory/node.hpp" namespace "callboard" nogil:
    enum class Kind "callboard::Kind"(uint8_t):
        python
        ask
        integer
        real
        buffer
        record
        sampled_tell
        sampled_ask

    const uint8_t wants_answer

    cdef cppclass Node:
        Node* get_next "next.load" (memory_order)
        void set_next "next.store" (Node*, memory_order)
        Kind kind
        uint8_t flags
        uint32_t tag
        void* first
        void* second
        void* sender "second"    # of what was told
        void* reply_to "second"  # of what was asked: the future that wants the answer
        int64_t integer
        double real
        unsigned char* bytes

    cdef cppclass FreeList:
        void free_all()

    cdef cppclass Surplus:
        bint is_empty()
        void free_all()

    cdef cppclass NodeCache:
        Surplus* surplus
        Node* take(FreeList& list) except +
        Node* try_take(FreeList& list)
        void give(Node* node, FreeList& list)

cdef extern from "callboard/core/threads/parker.hpp" namespace "callboard" nogil:
    cdef cppclass Parker:
        bint park()
        bint park_for "park" (int64_t nanoseconds)
        bint unpark()

cdef extern from "callboard/core/threads/interpreter.hpp" namespace "callboard" nogil:
    void await_interpreter(int64_t since)
