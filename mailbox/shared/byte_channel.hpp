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
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "callboard/core/threads/spinner.hpp"
#include "callboard/mailbox/shared/byte_ring.hpp"
#include "callboard/mailbox/shared/event_count.hpp"

namespace callboard {

// One end of a channel. The first end is that of the process which made the memory.
class ByteChannelEnd {
public:
    // Bytes of memory, which begins with zeros. `capacity` of each ring is a power of two.
    static std::uint64_t memory_of(std::uint64_t capacity) { return sizeof(Shared) + 2 * capacity; }

    // `own` is the eventfd on which this end sleeps, `other` that of the other end. Null: the memory cannot be mapped, or is too
    // small. The memory must not shrink: see memfd_create(2) on seals.
    static ByteChannelEnd* open(int memory, std::uint64_t capacity, int own, int other, bool first) {
        const std::uint64_t size = memory_of(capacity);
        struct stat found;  // what lies beyond the end of a file cannot be read
        if (fstat(memory, &found) != 0 || static_cast<std::uint64_t>(found.st_size) < size) return nullptr;
        void* const mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
        if (mapped == MAP_FAILED) return nullptr;
        auto* const shared = static_cast<Shared*>(mapped);  // zeros are a valid state, and another process may use it
        return new ByteChannelEnd(shared, size, capacity, own, other, first);
    }
    ~ByteChannelEnd() { munmap(shared_, size_); }
    ByteChannelEnd(const ByteChannelEnd&) = delete;

    // Sends the message from `sent` bytes on, as far as there is room. Returns how many bytes are sent by then. An
    // empty message must not be sent.
    std::uint64_t send(const unsigned char* message, std::uint64_t size, std::uint64_t sent) {
        const std::uint64_t begin = sent;
        const std::uint64_t most = std::min<std::uint64_t>(writer_.largest(), capacity_ / 4);
        while (sent < size) {
            const std::uint64_t piece = std::min(most, size - sent);
            const bool is_last = sent + piece == size;
            unsigned char* const at = writer_.reserve(static_cast<std::uint32_t>(piece), is_last ? last : more);
            if (at == nullptr) break;
            std::memcpy(at, message + sent, piece);
            sent += piece;
            writer_.publish();
        }
        if (sent != begin) wake_other();
        return sent;
    }

    // The next piece of a message; false: there is none now. finish_piece() gives its room back.
    bool receive_piece(RingReader::Record& piece) { return reader_.next(piece); }
    void finish_piece() {
        if (reader_.finish()) wake_other();
    }
    static bool is_last(const RingReader::Record& piece) { return piece.kind == last; }

    // The other process has written what cannot be.
    bool is_broken() const { return reader_.is_broken() || writer_.is_broken(); }

    // Before a look at what came, or for room.
    std::uint64_t look() const { return own_events_.look(); }

    // Waits until the other end has done something since that look, or `also` is readable or closed, or `milliseconds`
    // have passed if they are not negative.
    void wait(std::uint64_t looked, int also, int milliseconds) {
        if (spinner_.wait_until([&] { return own_events_.look() != looked; }, patience)) return;
        if (!own_events_.try_sleep(looked)) return;
        pollfd polled[] = {{own_, POLLIN, 0}, {also, POLLIN, 0}};
        poll(polled, 2, milliseconds);
        own_events_.awake();
        eventfd_t count;
        if (polled[0].revents & POLLIN) eventfd_read(own_, &count);
    }

    // Any thread of this process: ends a wait of this end.
    void wake_own() {
        if (own_events_.notify()) eventfd_write(own_, 1);
    }

private:
    static constexpr std::uint32_t last = 0, more = 1;
    static constexpr std::int64_t patience = 20'000;  // nanoseconds

    struct Shared {
        RingCounters to_second, to_first;
        alignas(cache_line) EventCount of_first;
        alignas(cache_line) EventCount of_second;
        alignas(cache_line) unsigned char bytes[];
    };

    ByteChannelEnd(Shared* shared, std::uint64_t size, std::uint64_t capacity, int own, int other, bool first)
        : shared_(shared), size_(size), capacity_(capacity), own_(own), other_(other),
          own_events_(first ? shared->of_first : shared->of_second),
          other_events_(first ? shared->of_second : shared->of_first),
          writer_(first ? shared->to_second : shared->to_first, shared->bytes + (first ? 0 : capacity), capacity),
          reader_(first ? shared->to_first : shared->to_second, shared->bytes + (first ? capacity : 0), capacity) {}

    void wake_other() {
        if (other_events_.notify()) eventfd_write(other_, 1);
    }

    Shared* const shared_;
    const std::uint64_t size_, capacity_;
    const int own_, other_;
    EventCount &own_events_, &other_events_;
    RingWriter writer_;
    RingReader reader_;
    Spinner spinner_;
};

}  // namespace callboard
