# Blocks of shared memory for large values.
from libc.stdint cimport uint64_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr

cdef extern from "callboard/mailbox/shared/blocks.hpp" namespace "callboard" nogil:
    cppclass BlockRegion "callboard::BlockRegion":
        @staticmethod
        uint64_t memory_of(uint64_t pages)

    cppclass RegionWriter "callboard::RegionWriter":
        @staticmethod
        RegionWriter* open(int memory, uint64_t pages)
        uint64_t allocate(uint64_t size)
        unsigned char* bytes(uint64_t first)
        void trim()
        uint64_t lent()
        cbool is_usable()

    cppclass RegionReader "callboard::RegionReader":
        @staticmethod
        shared_ptr[RegionReader] open(int memory, uint64_t pages)
        cbool has(uint64_t first, uint64_t size)
        cbool is_crowded(uint64_t size)

    cppclass ReadBlock "callboard::ReadBlock":
        ReadBlock(shared_ptr[RegionReader] reader, uint64_t first, uint64_t size)
        const unsigned char* bytes()
        uint64_t size()

cdef extern from *:
    """
    constexpr std::uint64_t no_page = callboard::RegionWriter::none;
    """
    const uint64_t no_page


cdef class BlockWriter:
    cdef RegionWriter* writer


cdef class BlockReader:
    cdef shared_ptr[RegionReader] reader


cdef class SharedBlock:
    cdef ReadBlock* block
