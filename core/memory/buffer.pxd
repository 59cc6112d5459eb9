from libc.stdint cimport int64_t

cdef extern from "callboard/core/memory/buffer.hpp" namespace "callboard" nogil:
    cdef cppclass Buffer:
        void* data
        int64_t size
        int64_t item_size
        char format
        bint readonly
        void* array
        void* schema
        void* owner
        Buffer* next
        void (*destroy)(Buffer*) noexcept nogil
        void retain()
        void drop()
        @staticmethod
        Buffer* allocate(int64_t bytes) except +

    cdef cppclass DeadBuffers "callboard::DeadBuffers":
        bint push(Buffer* buffer)
        Buffer* take_all()
