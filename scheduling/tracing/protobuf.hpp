// A writer of messages in the wire format of Protocol Buffers, as far as traces need it.
//
// A field is a tag, which is its number and its wire type, and a value. The length of an inner message comes before it,
// but is not known yet. So one byte is left for the length; a message that needs a longer one is moved.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace callboard {

class ProtobufWriter {
public:
    // A non-negative whole number.
    void number(std::uint32_t field, std::uint64_t value) {
        make_room();
        varint(field << 3);
        varint(value);
    }

    void text(std::uint32_t field, std::string_view words) {
        make_room(words.size());
        varint(field << 3 | with_length);
        varint(words.size());
        if (!words.empty()) std::memcpy(bytes_.data() + length_, words.data(), words.size());
        length_ += words.size();
    }

    // A whole number in eight bytes, as `fixed64`.
    void fixed(std::uint32_t field, std::uint64_t value) {
        make_room();
        varint(field << 3 | with_eight_bytes);
        for (int byte = 0; byte < 8; ++byte) bytes_[length_++] = static_cast<char>(value >> (8 * byte));
    }

    // Begins an inner message. end() takes the result.
    std::size_t begin(std::uint32_t field) {
        make_room();
        varint(field << 3 | with_length);
        return ++length_;
    }

    void end(std::size_t begun) {
        assert(begun <= length_ && "a message ends after its begin");
        const std::size_t size = length_ - begun;
        if (__builtin_expect(size < 128, 1)) {
            bytes_[begun - 1] = static_cast<char>(size);
            return;
        }
        make_room();
        std::size_t more = 0;
        for (std::size_t rest = size >> 7; rest != 0; rest >>= 7) ++more;
        if (more != 0) std::memmove(bytes_.data() + begun + more, bytes_.data() + begun, size);
        length_ = begun - 1;
        varint(size);
        length_ += size;
    }

    // Room for `size` bytes, to write small messages at once; taken() gets their end.
    unsigned char* room(std::size_t size) {
        make_room(size);
        return reinterpret_cast<unsigned char*>(bytes_.data()) + length_;
    }
    void taken(const unsigned char* end) {
        length_ = static_cast<std::size_t>(reinterpret_cast<const char*>(end) - bytes_.data());
        assert(length_ <= bytes_.size() && "no more was written than there was room for");
    }

    static unsigned char* varint_to(unsigned char* to, std::uint64_t value) {
        while (value >= 128) {
            *to++ = static_cast<unsigned char>(value | 128);
            value >>= 7;
        }
        *to++ = static_cast<unsigned char>(value);
        return to;
    }

    void clear() { length_ = 0; }
    const char* data() const { return bytes_.data(); }
    std::size_t size() const { return length_; }

private:
    static constexpr std::uint32_t with_eight_bytes = 1, with_length = 2;  // wire types

    // For a tag, a number, and the length of a message.
    void make_room(std::size_t size = 0) {
        if (bytes_.size() < length_ + size + 32) bytes_.resize(2 * (length_ + size + 32));
    }

    void varint(std::uint64_t value) {
        while (value >= 128) {
            bytes_[length_++] = static_cast<char>(value | 128);
            value >>= 7;
        }
        bytes_[length_++] = static_cast<char>(value);
    }

    std::vector<char> bytes_;
    std::size_t length_{0};
};

}  // namespace callboard
