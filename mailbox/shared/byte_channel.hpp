// Messages of any length between two processes, in both directions, over two rings of bytes in one shared memory.
//
// A message that is longer than a quarter of a ring travels in pieces, so the ring limits no message and the reader may
// begin before the writer has ended. An end sleeps on an eventfd of its own, until the other end has written something
// or made room, and wakes early if another descriptor becomes readable: that of the other process's end.
//
// Each end is used by one thread at a time on each side: one that sends, and one that receives and waits.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "callboard/core/atomics.hpp"
#include "callboard/core/clock.hpp"
#include "callboard/core/threads/spinner.hpp"
#include "callboard/mailbox/shared/byte_ring.hpp"
#include "callboard/mailbox/shared/event_count.hpp"
#include "callboard/mailbox/shared/shared_mapping.hpp"

namespace callboard {

// One end of a channel. The first end is that of the process which made the memory.
class ByteChannelEnd {
public:
    // Bytes of memory, which begins with zeros. `capacity` of each ring is a power of two.
    static std::uint64_t memory_of(std::uint64_t capacity) { return sizeof(Shared) + 2 * capacity; }

    // `own` is the eventfd on which this end sleeps, `other` that of the other end. Null: the memory cannot be mapped, or is too
    // small.
    static ByteChannelEnd* open(int memory, std::uint64_t capacity, int own, int other, bool first) {
        auto mapping = SharedMapping::open(memory, memory_of(capacity));
        if (mapping == nullptr) return nullptr;
        return new ByteChannelEnd(std::move(mapping), capacity, own, other, first);
    }
    ByteChannelEnd(const ByteChannelEnd&) = delete;

    // Sends the message from `sent` bytes on, as far as there is room. Returns how many bytes are sent by then. An
    // empty message must not be sent. With `hesitates`, an end that sleeps is woken only after a microsecond or two: one
    // of its threads may be about to receive.
    std::uint64_t send(const unsigned char* message, std::uint64_t size, std::uint64_t sent, bool hesitates) {
        const std::uint64_t begin = sent;
        const std::uint64_t most = std::min<std::uint64_t>(writer_.largest(), capacity_ / 4);
        while (sent < size) {
            const std::uint64_t piece = std::min(most, size - sent);
            const std::uint32_t kind = sent + piece == size ? last : more;
            unsigned char* at = writer_.reserve(static_cast<std::uint32_t>(piece), kind);
            if (at == nullptr) {
                wants_room_.exchange(1, acq_rel);  // pairs with finish_piece(): it notifies, or this sees its room
                at = writer_.reserve(static_cast<std::uint32_t>(piece), kind);
            }
            if (at == nullptr) break;
            std::memcpy(at, message + sent, piece);
            sent += piece;
            writer_.publish();
        }
        if (sent != begin) wake_other(hesitates);
        return sent;
    }

    // The next piece of a message; false: there is none now. finish_piece() gives its room back.
    bool receive_piece(RingReader::Record& piece) { return reader_.next(piece); }
    void finish_piece() {
        // An addition to the other end's events for each piece would cost both ends more, and wake it for nothing.
        if (reader_.finish() && other_wants_room_.exchange(0, acq_rel) != 0) wake_other(false);  // pairs with send()
    }
    static bool is_last(const RingReader::Record& piece) { return piece.kind == last; }

    // A fork of the process does not have the memory.
    bool is_usable() const { return mapping_->is_usable(); }

    // The other process has written what cannot be.
    bool is_broken() const { return reader_.is_broken() || writer_.is_broken(); }
    void mark_broken() { reader_.mark_broken(); }  // by the thread that receives

    // Before a look at what came, or for room.
    std::uint64_t look() const { return own_events_.look(); }

    // Waits until the other end has done something since that look, or `also` is readable or closed, or `milliseconds`
    // have passed if they are not negative.
    void wait(std::uint64_t looked, int also, int milliseconds) {
        const bool spins = missed_ < tries || missed_ % retry == 0;
        if (spins && spin(looked)) {
            missed_ = 0;
            return;
        }
        ++missed_;
        if (!own_events_.try_sleep(looked)) return;
        sleep(also, milliseconds);
        own_events_.awake();
    }

    // Any thread of this process: ends a wait of this end.
    void wake_own() {
        if (own_events_.notify()) eventfd_write(own_, 1);
    }

    // Several threads may receive in turn, and one of them, the keeper, sleeps while no other does. A thread calls
    // begin_receiving() first. end_receiving() is the last call: the keeper wakes if the other end has done something
    // since that look, or does so later. Between these calls the other end wakes nobody, and the receiver may spin().

    void begin_receiving() { own_events_.awake(); }
    void end_receiving(std::uint64_t looked) {
        if (!own_events_.try_sleep(looked)) rouse();
    }

    // True: the other end has done something since that look. False: it has not, for some microseconds.
    bool spin(std::uint64_t looked) {
        return spinner_.wait_until([&] { return own_events_.look() != looked; }, patience);
    }

    // The keeper: sleeps as wait() does.
    void sleep(int also, int milliseconds) {
        pollfd polled[] = {{own_, POLLIN, 0}, {also, POLLIN, 0}};
        poll(polled, 2, milliseconds);
        eventfd_t count;
        if (polled[0].revents & POLLIN) eventfd_read(own_, &count);
    }

    // Any thread of this process: ends a sleep() of this end.
    void rouse() { eventfd_write(own_, 1); }

private:
    static constexpr std::uint32_t last = 0, more = 1;
    static constexpr std::int64_t patience = 20'000;  // nanoseconds
    static constexpr std::int64_t hesitation = 2'000;
    static constexpr std::uint32_t tries = 4;         // waits that spin without success, before no wait spins
    static constexpr std::uint32_t retry = 64;        // waits after which one spins again

    struct Shared {
        RingCounters to_second, to_first;
        alignas(cache_line) EventCount of_first;
        alignas(cache_line) EventCount of_second;
        alignas(cache_line) Atomic<std::uint32_t> first_wants_room;  // it found none, and waits for it
        alignas(cache_line) Atomic<std::uint32_t> second_wants_room;
        alignas(cache_line) unsigned char bytes[];
    };

    ByteChannelEnd(std::unique_ptr<SharedMapping> mapping, std::uint64_t capacity, int own, int other, bool first)
        : ByteChannelEnd(*reinterpret_cast<Shared*>(mapping->bytes()), capacity, own, other, first) {
        mapping_ = std::move(mapping);
    }
    // Zeros are a valid state of what is shared, and another process may use it.
    ByteChannelEnd(Shared& shared, std::uint64_t capacity, int own, int other, bool first)
        : capacity_(capacity), own_(own), other_(other), own_events_(first ? shared.of_first : shared.of_second),
          other_events_(first ? shared.of_second : shared.of_first),
          wants_room_(first ? shared.first_wants_room : shared.second_wants_room),
          other_wants_room_(first ? shared.second_wants_room : shared.first_wants_room),
          writer_(first ? shared.to_second : shared.to_first, shared.bytes + (first ? 0 : capacity), capacity),
          reader_(first ? shared.to_first : shared.to_second, shared.bytes + (first ? capacity : 0), capacity) {}

    void wake_other(bool hesitates) {
        const auto hesitate = [&](auto&& sleeps) {
            if (!hesitates) return;
            const std::int64_t end = monotonic_ns() + hesitation;
            while (sleeps() && monotonic_ns() < end) relax();
        };
        if (other_events_.notify(hesitate)) eventfd_write(other_, 1);
    }

    std::unique_ptr<SharedMapping> mapping_;
    const std::uint64_t capacity_;
    const int own_, other_;
    EventCount &own_events_, &other_events_;
    Atomic<std::uint32_t>&wants_room_, &other_wants_room_;
    RingWriter writer_;
    RingReader reader_;
    Spinner spinner_;
    std::uint32_t missed_{0};  // waits since one that a spin ended
};

}  // namespace callboard
