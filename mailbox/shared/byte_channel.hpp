// Messages of any length between two processes, in both directions, over two rings of bytes in one shared memory.
//
// An end sleeps on an eventfd of its own, until the other end has written something or made room, and wakes early if
// another descriptor becomes readable: that of the other process's end.
//
// Each end is used by one thread at a time on each side: one that sends, and one that receives and waits.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "callboard/core/atomics.hpp"
#include "callboard/core/clock.hpp"
#include "callboard/mailbox/shared/event_count.hpp"
#include "callboard/mailbox/shared/event_waiter.hpp"
#include "callboard/mailbox/shared/message_ring.hpp"
#include "callboard/mailbox/shared/shared_mapping.hpp"

namespace callboard {

// One end of a channel. The first end is that of the process which made the memory.
class ByteChannelEnd {
public:
    using Message = MessageReader::Message;

    // Bytes of memory, which begins with zeros. `capacity` of each ring is a power of two.
    static std::uint64_t memory_of(std::uint64_t capacity) {
        return sizeof(Events) + 2 * MessageRing::memory_of(capacity);
    }

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
        const std::uint64_t total = writer_.send(message, size, sent);
        if (total != sent) wake_other(hesitates);
        return total;
    }

    // The next message that has come as a whole, whose bytes stay until finish(); false: there is none now.
    bool receive(Message& message) {
        return reader_.receive(message, [this] { wake_other(false); });
    }
    void finish() {
        reader_.finish([this] { wake_other(false); });
    }

    // A fork of the process does not have the memory.
    bool is_usable() const { return mapping_->is_usable(); }

    // The other process has written what cannot be.
    bool is_broken() const { return reader_.is_broken() || writer_.is_broken(); }
    void mark_broken() { reader_.mark_broken(); }  // by the thread that receives

    // Before a look at what came, or for room.
    std::uint64_t look() const { return waiter_.look(); }

    // Waits until the other end has done something since that look, or `also` is readable or closed, or `milliseconds`
    // have passed if they are not negative.
    void wait(std::uint64_t looked, int also, int milliseconds) { waiter_.wait(looked, also, milliseconds); }

    // Any thread of this process: ends a wait of this end.
    void wake_own() {
        own_events_.notify([this] { rouse(); });
    }

    // Several threads may receive in turn, and one of them, the keeper, sleeps while no other does. A thread calls
    // begin_receiving() first. end_receiving() is the last call: the keeper wakes if the other end has done something
    // since that look, or does so later. Between these calls the other end wakes nobody, and the receiver may spin().

    void begin_receiving() { own_events_.awake(); }
    void end_receiving(std::uint64_t looked) {
        if (!own_events_.try_sleep(looked)) rouse();
    }

    // True: the other end has done something since that look. False: it has not, for some microseconds.
    bool spin(std::uint64_t looked) { return waiter_.spin(looked); }

    // The keeper: sleeps as wait() does.
    void sleep(int also, int milliseconds) { waiter_.sleep(also, milliseconds); }

    // Any thread of this process: ends a sleep() of this end.
    void rouse() { EventWaiter::rouse(own_); }

private:
    static constexpr std::int64_t hesitation = 2'000;  // nanoseconds

    // In shared memory, before the rings to the second end and to the first one. Zeros are a valid state.
    struct Events {
        alignas(cache_line) EventCount of_first;
        alignas(cache_line) EventCount of_second;
    };

    ByteChannelEnd(std::unique_ptr<SharedMapping> mapping, std::uint64_t capacity, int own, int other, bool first)
        : ByteChannelEnd(mapping->bytes(), capacity, own, other, first) {
        mapping_ = std::move(mapping);
    }
    ByteChannelEnd(unsigned char* memory, std::uint64_t capacity, int own, int other, bool first)
        : ByteChannelEnd(*reinterpret_cast<Events*>(memory), ring_at(memory, capacity, first ? 0 : 1),
                         ring_at(memory, capacity, first ? 1 : 0), capacity, own, other, first) {}
    ByteChannelEnd(Events& events, MessageRing& there, MessageRing& back, std::uint64_t capacity, int own, int other,
                   bool first)
        : own_(own), other_(other), own_events_(first ? events.of_first : events.of_second),
          other_events_(first ? events.of_second : events.of_first), writer_(there, there.bytes(), capacity),
          reader_(back, back.bytes(), capacity), waiter_(own_events_, own) {}

    static MessageRing& ring_at(unsigned char* memory, std::uint64_t capacity, std::uint64_t index) {
        return MessageRing::at(memory + sizeof(Events) + index * MessageRing::memory_of(capacity));
    }

    void wake_other(bool hesitates) {
        const auto hesitate = [&](auto&& sleeps) {
            if (!hesitates) return;
            const std::int64_t end = monotonic_ns() + hesitation;
            while (sleeps() && monotonic_ns() < end) relax();
        };
        other_events_.notify([this] { EventWaiter::rouse(other_); }, hesitate);
    }

    std::unique_ptr<SharedMapping> mapping_;
    const int own_, other_;
    EventCount &own_events_, &other_events_;
    MessageWriter writer_;
    MessageReader reader_;
    EventWaiter waiter_;
};

}  // namespace callboard
