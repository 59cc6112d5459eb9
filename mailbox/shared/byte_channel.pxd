# One end of a channel between two processes.
from libc.stdint cimport uint64_t
from libcpp cimport bool as cbool

cdef extern from "callboard/mailbox/shared/byte_channel.hpp" namespace "callboard" nogil:
    cppclass Message "callboard::MessageReader::Message":
        const unsigned char* bytes
        uint64_t size

    cppclass ByteChannelEnd "callboard::ByteChannelEnd":
        @staticmethod
        uint64_t memory_of(uint64_t capacity)
        @staticmethod
        ByteChannelEnd* open(int memory, uint64_t capacity, int own, int other, cbool first)
        uint64_t send(const unsigned char* message, uint64_t size, uint64_t sent, cbool hesitates)
        cbool receive(Message& message) except +
        void finish()
        cbool is_usable()
        cbool is_broken()
        void mark_broken()
        uint64_t look()
        void wait(uint64_t looked, int also, int milliseconds)
        void wake_own()
        void begin_receiving()
        void end_receiving(uint64_t looked)
        cbool spin(uint64_t looked)
        void sleep(int also, int milliseconds)
        void rouse()


cdef class ByteChannel:
    cdef ByteChannelEnd* channel

    cdef int check_usable(self) except -1

    cpdef uint64_t send(self, bytes message, uint64_t sent=*, bint hesitates=*) except? 0
    cpdef bytes receive(self)
    cpdef uint64_t look(self)
    cpdef begin_receiving(self)
    cpdef end_receiving(self, uint64_t looked)
    cpdef bint spin(self, uint64_t looked)
