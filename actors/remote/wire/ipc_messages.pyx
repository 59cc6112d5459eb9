"""Where the messages of a stream in Arrow's IPC format lie: whoever wrote it is not trusted.

pyarrow takes the lengths that it finds for granted, and ends the process where they are wrong.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memcpy

from callboard.remote.errors import CodecError

cdef extern from * nogil:
    """
    #include <cstdint>
    #include <cstring>
    namespace callboard {
    // A FlatBuffer (https://flatbuffers.dev/internals/): numbers, little endian, at places that it says itself.
    struct FlatBuffer {
        const unsigned char* data;
        std::int64_t size;
        bool leads_out = false;  // somebody was to read beyond its ends, and got 0

        template <class Number>
        std::int64_t number(std::int64_t at) {
            Number value = 0;
            if (at < 0 || at > size - static_cast<std::int64_t>(sizeof value)) {
                leads_out = true;
            } else {
                std::memcpy(&value, data + at, sizeof value);
            }
            return value;
        }
        // Where a table lies that is referred to at a place.
        std::int64_t table(std::int64_t at) { return at + number<std::uint32_t>(at); }
        // Where a table's field lies; 0 if it has none.
        std::int64_t field(std::int64_t table, int number_of_it) {
            const std::int64_t layout = table - number<std::int32_t>(table);
            const std::int64_t place = 4 + 2 * number_of_it;
            if (place >= number<std::uint16_t>(layout)) return 0;
            const std::int64_t offset = number<std::uint16_t>(layout + place);
            return offset ? table + offset : 0;
        }
    };

    // What Arrow's format/Message.fbs says of a message.
    struct IpcMessage {
        std::int64_t kind = 0, body = 0;
        bool is_compressed = false, leads_out = false;
    };

    inline IpcMessage read_ipc_message(const unsigned char* data, std::int64_t size) {
        constexpr int header_type = 1, header = 2, body_length = 3;     // of Message
        constexpr int dictionary = 2, batch = 3;                        // of MessageHeader
        constexpr int dictionary_data = 1, compression = 3;             // of DictionaryBatch and RecordBatch
        FlatBuffer metadata{data, size};
        IpcMessage said;
        const std::int64_t message = metadata.table(0);
        if (const std::int64_t at = metadata.field(message, header_type)) said.kind = metadata.number<std::uint8_t>(at);
        if (const std::int64_t at = metadata.field(message, body_length)) said.body = metadata.number<std::int64_t>(at);
        std::int64_t at = metadata.field(message, header);
        if (at && said.kind == dictionary) at = metadata.field(metadata.table(at), dictionary_data);
        if (at && (said.kind == dictionary || said.kind == batch)) {
            said.is_compressed = metadata.field(metadata.table(at), compression) != 0;
        }
        said.leads_out = metadata.leads_out;
        return said;
    }
    }  // namespace callboard
    """
    cdef cppclass IpcMessage "callboard::IpcMessage":
        int64_t kind, body
        bint is_compressed, leads_out
    IpcMessage read_ipc_message "callboard::read_ipc_message"(const unsigned char* data, int64_t size)

# MessageHeader of Message.fbs.
DICTIONARY, BATCH = 2, 3
# Before a message's metadata: a mark, and how long they are. A stream ends with a length of 0.
cdef uint32_t CONTINUATION = 0xFFFFFFFF
cdef Py_ssize_t PREFIX = 8


def messages_in(const unsigned char[::1] data not None, Py_ssize_t at=0):
    """Return of each message of a stream, from `at` on, where it begins, how long it is, and its kind.

    Raises CodecError where it would lead beyond the data, and for compressed buffers, as what they
    become could be of any size.
    """
    cdef Py_ssize_t end = data.shape[0], begin
    cdef uint32_t mark
    cdef int32_t size
    cdef IpcMessage said
    found = []
    while at < end:
        if end - at < PREFIX:
            raise CodecError(f"{end - at} bytes at {at}, and a message begins with {PREFIX}")
        memcpy(&mark, &data[at], sizeof(mark))
        memcpy(&size, &data[at + 4], sizeof(size))
        if mark != CONTINUATION:
            raise CodecError(f"no message at {at}")
        if size == 0:
            break
        begin = at + PREFIX
        if not 8 <= size <= end - begin:
            raise CodecError(f"a message's metadata of {size} bytes, and {end - begin} are there")
        said = read_ipc_message(&data[begin], size)
        if said.leads_out:
            raise CodecError(f"a message's metadata at {at} lead out of their {size} bytes")
        if not 0 <= said.body <= end - begin - size:
            raise CodecError(f"a message's body of {said.body} bytes, and {end - begin - size} are there")
        if said.is_compressed:
            raise CodecError("compressed record batches are not taken")
        found.append((at, PREFIX + size + said.body, said.kind))
        at = begin + size + said.body
    return found
