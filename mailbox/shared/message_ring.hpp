// Messages of any length from one process to another, over a ring of bytes in shared memory.
//
// A message that is longer than a quarter of the ring travels in pieces, so the ring limits no message and the reader may
// begin before the writer has ended. Each piece says whether it is the first or the last one of its message. A writer
// that finds no room sets a flag, and the reader that makes room then wakes it.
//
// When a process has ended, its successor begins where its published or finished records end: see byte_ring.hpp. So a
// message may lack its last pieces, or the first ones. Its reader drops it, and never takes a part for the whole.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/shared/byte_ring.hpp"

namespace callboard {

// In shared memory, before the bytes of the ring. Zeros are a valid state: an empty ring.
struct MessageRing {
    RingCounters counters;
    alignas(cache_line) Atomic<std::uint32_t> wants_room;  // the writer found none, and waits for it

    static std::uint64_t memory_of(std::uint64_t capacity) { return sizeof(MessageRing) + capacity; }
    static MessageRing& at(unsigned char* memory) { return *reinterpret_cast<MessageRing*>(memory); }
    unsigned char* bytes() { return reinterpret_cast<unsigned char*>(this + 1); }

    // Forgets all messages, while it has neither a writer nor a reader.
    void clear() {
        counters.written.store(0, relaxed);
        counters.read.store(0, relaxed);
    }

    static constexpr std::uint32_t first = 1, last = 2;  // kinds of pieces; a message in one piece is both
};

class MessageWriter {
public:
    // `capacity` of the ring is a power of two of at least 64.
    MessageWriter(MessageRing& ring, unsigned char* bytes, std::uint64_t capacity)
        : ring_(ring), writer_(ring.counters, bytes, capacity), most_(capacity / 4) {
        assert(most_ <= writer_.largest());
    }

    // Sends the message from `sent` bytes on, as far as there is room. Returns how many bytes are sent by then. An
    // empty message must not be sent.
    std::uint64_t send(const unsigned char* message, std::uint64_t size, std::uint64_t sent) {
        while (sent < size) {
            const std::uint64_t piece = std::min(most_, size - sent);
            const std::uint32_t kind =
                (sent == 0 ? MessageRing::first : 0) | (sent + piece == size ? MessageRing::last : 0);
            unsigned char* at = writer_.reserve(static_cast<std::uint32_t>(piece), kind);
            if (at == nullptr) {
                ring_.wants_room.exchange(1, acquire);  // pairs with finish(): it wakes, or this sees its room
                at = writer_.reserve(static_cast<std::uint32_t>(piece), kind);
            }
            if (at == nullptr) break;
            std::memcpy(at, message + sent, piece);
            sent += piece;
            writer_.publish();
        }
        return sent;
    }

    // The other process has written what cannot be.
    bool is_broken() const { return writer_.is_broken(); }

private:
    MessageRing& ring_;
    RingWriter writer_;
    const std::uint64_t most_;  // bytes of a piece
};

class MessageReader {
public:
    struct Message {
        const unsigned char* bytes;
        std::uint64_t size;
    };

    MessageReader(MessageRing& ring, unsigned char* bytes, std::uint64_t capacity)
        : ring_(ring), reader_(ring.counters, bytes, capacity) {}

    // False: receive() has nothing, as far as this thread knows. A quick look, for one of many rings.
    bool may_have_message() const { return reader_.may_have_next(); }

    // The next message that has come as a whole, whose bytes stay until finish(); false: there is none now. Calls
    // wake_writer() if the writer waits for room that there is now. Throws std::bad_alloc; that message is dropped.
    template <class Wake>
    [[nodiscard]] bool receive(Message& message, Wake&& wake_writer) {
        RingReader::Record piece;
        while (reader_.next(piece)) {
            if (piece.kind > (MessageRing::first | MessageRing::last)) return mark_broken(), false;
            const bool is_first = piece.kind & MessageRing::first, is_last = piece.kind & MessageRing::last;
            if (is_first) has_begun_ = true, pieces_.clear();
            has_dropped_ = has_dropped_ || !has_begun_;
            if (is_first && is_last) {
                has_begun_ = false;
                message = {piece.bytes, piece.size};
                return true;
            }
            const bool is_wanted = std::exchange(has_begun_, false);  // it stays so if there is no memory
            if (is_wanted) pieces_.insert(pieces_.end(), piece.bytes, piece.bytes + piece.size);
            finish_piece(wake_writer);
            has_begun_ = is_wanted && !is_last;
            if (!is_wanted || !is_last) continue;
            message = {pieces_.data(), pieces_.size()};
            return true;
        }
        return false;
    }

    // Gives the room of the message back.
    template <class Wake>
    void finish(Wake&& wake_writer) {
        assert(!has_begun_);
        if (!pieces_.empty()) std::vector<unsigned char>().swap(pieces_);
        finish_piece(wake_writer);
    }

    // True: there was a message whose first piece was received before, by a process that has ended.
    bool has_dropped() const { return has_dropped_; }

    // The other process has written what cannot be, or a message was received that cannot be.
    bool is_broken() const { return reader_.is_broken(); }
    void mark_broken() { reader_.mark_broken(); }

private:
    template <class Wake>
    void finish_piece(Wake&& wake_writer) {
        // To wake a writer for each piece would cost both processes more, and mostly wake it for nothing.
        if (reader_.finish() && ring_.wants_room.exchange(0, release) != 0) wake_writer();  // pairs with send()
    }

    MessageRing& ring_;
    RingReader reader_;
    bool has_begun_{false};  // there are pieces of a message that has not come as a whole
    bool has_dropped_{false};
    std::vector<unsigned char> pieces_;
};

}  // namespace callboard
