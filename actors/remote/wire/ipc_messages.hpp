// A reader of the metadata of a message in Arrow's IPC format; its writer is not trusted.
#pragma once

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

// The fields of a message in Arrow's format/Message.fbs.
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
