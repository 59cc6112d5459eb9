from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from callboard.frequency.counting.keys cimport ByteRun

cdef extern from "callboard/frequency/designs/summary.hpp" namespace "callboard" nogil:
    uint64_t part_of(double support, uint64_t total)  # the whole part

    cdef struct KeyEstimate:
        uint64_t count
        uint64_t error
        bint has_counter

    cdef struct IntegerRow "callboard::Summary<callboard::IntegerKeys>::Row":
        int64_t key
        uint64_t count
        uint64_t error

    cdef struct IntegerAnswer "callboard::Summary<callboard::IntegerKeys>::Answer":
        vector[IntegerRow] rows
        uint64_t total
        uint64_t unseen

    cdef cppclass IntegerSummary "callboard::Summary<callboard::IntegerKeys>":
        void add(unsigned stream, const int64_t* keys, const uint64_t* weights, size_t count) except +
        bint try_add(unsigned stream, const int64_t* keys, const uint64_t* weights, size_t count)
        IntegerAnswer ask(size_t most, double support) except +
        KeyEstimate estimate(int64_t key) except +
        uint64_t total()
        uint32_t size() except +
        void load(const IntegerAnswer& state) except +

    cdef cppclass ByteKeysCopy "callboard::ByteKeys::Copy":
        string data
        uint32_t kind

    cdef cppclass ByteRow "callboard::Summary<callboard::ByteKeys>::Row":
        ByteKeysCopy key
        uint64_t count
        uint64_t error

    cdef cppclass ByteAnswer "callboard::Summary<callboard::ByteKeys>::Answer":
        vector[ByteRow] rows
        uint64_t total
        uint64_t unseen

    cdef cppclass ByteSummary "callboard::Summary<callboard::ByteKeys>":
        void add(unsigned stream, const ByteRun* keys, const uint64_t* weights, size_t count) except +
        bint try_add(unsigned stream, const ByteRun* keys, const uint64_t* weights, size_t count)
        ByteAnswer ask(size_t most, double support) except +
        KeyEstimate estimate(const ByteRun& key) except +
        uint64_t total()
        uint32_t size() except +
        void load(const ByteAnswer& state) except +


cdef extern from "callboard/frequency/designs/design.hpp" namespace "callboard" nogil:
    cdef enum Design "callboard::Design":
        pass

    IntegerSummary* make_integers "callboard::make_summary<callboard::IntegerKeys>"(
        Design design, uint32_t capacity, uint64_t seed, unsigned streams, unsigned threads) except +
    ByteSummary* make_runs "callboard::make_summary<callboard::ByteKeys>"(
        Design design, uint32_t capacity, uint64_t seed, unsigned streams, unsigned threads) except +
