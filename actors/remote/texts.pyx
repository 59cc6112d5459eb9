"""What is looked at in each byte of a column of texts, without the interpreter's lock."""

cdef extern from * nogil:
    """
    #include <cstddef>
    #include <cstdint>
    #include <cstring>
    namespace callboard {
    // Whether no byte has its highest bit set. By a kilobyte: the compiler makes vectors of the
    // inner loop, and a text that is not ASCII is found out early.
    inline bool all_ascii(const unsigned char* letters, std::size_t count) {
        constexpr std::size_t piece = 1024;
        std::size_t at = 0;
        for (; at + piece <= count; at += piece) {
            unsigned char all = 0;
            for (std::size_t i = 0; i < piece; ++i) all |= letters[at + i];
            if (all & 0x80) return false;
        }
        unsigned char all = 0;
        for (; at < count; ++at) all |= letters[at];
        return !(all & 0x80);
    }

    // Whether `count` texts lie one behind the other within `size` bytes.
    inline bool all_within(const unsigned char* data, std::size_t count, std::int64_t size) {
        const auto offset = [data](std::size_t at) {
            std::int32_t value;
            std::memcpy(&value, data + at * sizeof value, sizeof value);
            return value;
        };
        int backwards = 0;
        for (std::size_t i = 0; i < count; ++i) backwards |= offset(i + 1) < offset(i);
        return !backwards && offset(0) >= 0 && offset(count) <= size;
    }
    }  // namespace callboard
    """
    bint all_ascii "callboard::all_ascii"(const unsigned char* letters, size_t count)
    bint all_within "callboard::all_within"(const unsigned char* data, size_t count, Py_ssize_t size)


def are_ascii(const unsigned char[::1] letters not None):
    """Tell whether no byte is above 127."""
    cdef Py_ssize_t count = letters.shape[0]
    cdef bint are
    if count == 0:
        return True
    cdef const unsigned char* first = &letters[0]
    with nogil:
        are = all_ascii(first, count)
    return are


def lie_within(const unsigned char[::1] offsets not None, Py_ssize_t first, Py_ssize_t count, Py_ssize_t size):
    """Tell whether `count` texts from the one at `first` on lie one behind the other in `size` bytes.

    `offsets` are of 32 bits, one more than there are texts. Raises ValueError if there are not so many.
    """
    cdef Py_ssize_t places = offsets.shape[0] // 4
    cdef bint lie
    if not (0 <= first < places and 0 <= count < places - first):
        raise ValueError(f"{count} texts from {first} on, with {places} offsets")
    cdef const unsigned char* data = &offsets[4 * first]
    with nogil:
        lie = all_within(data, count, size)
    return lie
