# The inbox of a process, into which other processes send messages.
from libc.stdint cimport uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.vector cimport vector

from callboard.mailbox.shared.byte_channel cimport Message

cdef extern from "callboard/mailbox/shared/inbox.hpp" namespace "callboard" nogil:
    cppclass ProcessInbox "callboard::ProcessInbox":
        @staticmethod
        uint64_t memory_of(uint32_t processes, uint64_t capacity)
        @staticmethod
        ProcessInbox* open(int memory, uint32_t own, uint64_t capacity, vector[int] descriptors) except +
        uint32_t processes()
        cbool is_other(uint32_t process)
        uint64_t send(uint32_t process, const unsigned char* message, uint64_t size, uint64_t sent)
        cbool receive(uint32_t& process, Message& message) except +
        void finish()
        uint64_t look()
        void wait(uint64_t looked, int also, int milliseconds)
        void wake(uint32_t process)
        cbool is_usable()
        cbool is_broken(uint32_t process)
        void mark_broken(uint32_t process)
        vector[string] take_back(uint32_t process) except +


cdef class Inbox:
    cdef ProcessInbox* inbox

    cdef int check_usable(self) except -1
    cdef int check(self, uint32_t process) except -1

    cpdef uint64_t send(self, uint32_t process, bytes message, uint64_t sent=*) except? 0
    cpdef tuple receive(self)
    cpdef uint64_t look(self) except? 0
