// A ring of bytes between two processes: one writes records into shared memory, and the other reads them.
//
// A record is a header of 8 bytes, its bytes, and padding to a multiple of 8. It is in one piece: if it would pass the
// end of the ring, a filler takes the bytes up to there. The shared memory has no pointers, because its address differs
// between the processes, and two counters: all bytes that were ever written, and all that were read. Each end keeps
// its own place, and what it last saw of the other's counter, in memory of its own. So a record costs the other end's
// cache line only where the ring seems full or empty.
//
// Why it is right. The writer alone fills the bytes between the two counters, and stores `written` with release after
// whole records. The reader that acquires this sees them. The reader stores `read` with release when it has finished
// with records. The writer that acquires this may overwrite them.
//
// If a process ends, at whatever instruction, the other one is not affected: there is no lock, and one store publishes
// a record. Unpublished bytes are never seen, and published records can still be read. The process's successor goes on
// where its counter is: the records of the two are read in their order, and a finished record is not read again. The news
// of the process's end also orders its stores before those of the successor.
//
// The other process is not trusted. Before an end uses a counter or a header, it copies the value and checks that
// everything it stands for lies in the ring. If not, the ring is broken: nothing more is read or written. The bytes of a
// record may still change while they are read, so their decoder has to be safe for any bytes.
//
// Rejected: FastForward's slots, which say themselves whether they are full (mailbox/ordered/spsc.hpp). Records have
// different lengths, so a reader would find an old header where the next record is not written yet. Rejected: a second
// mapping behind the first, in which no record meets the end. It makes sizes multiples of a page, and each byte then
// has two addresses, which ThreadSanitizer does not see as one.
//
// Progress: wait-free.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "callboard/core/atomics.hpp"
#include "callboard/core/one_at_a_time.hpp"

namespace callboard {

// In shared memory, where zeros are a valid state: an empty ring.
struct RingCounters {
    alignas(cache_line) Atomic<std::uint64_t> written;  // the writer
    alignas(cache_line) Atomic<std::uint64_t> read;     // the reader
};

// A header. The reader copies it before it checks it.
struct RecordHeader {
    std::uint32_t size;  // bytes, without the header and the padding
    std::uint32_t kind;  // the user's number, or `filler`

    static constexpr std::uint32_t filler = ~std::uint32_t{0};
    static constexpr std::uint64_t unit = 8;

    static std::uint64_t room(std::uint64_t size) { return unit + (size + unit - 1) / unit * unit; }
};

// The common part of both ends.
class RingEnd {
public:
    // `capacity` bytes, a power of two of at least 16, at an address that is a multiple of 8.
    RingEnd(RingCounters& counters, unsigned char* bytes, std::uint64_t capacity)
        : counters_(counters), bytes_(bytes), capacity_(capacity) {
        assert(capacity >= 2 * RecordHeader::unit && (capacity & (capacity - 1)) == 0);
    }

    // True: the other process wrote what cannot be. It stays so.
    bool is_broken() const { return is_broken_; }
    void mark_broken() { is_broken_ = true; }

protected:
    std::uint64_t offset(std::uint64_t place) const { return place & (capacity_ - 1); }

    RingCounters& counters_;
    unsigned char* const bytes_;
    const std::uint64_t capacity_;
    std::uint64_t place_{0};  // the bytes that this end has written or read

private:
    bool is_broken_{false};
};

class RingWriter : public RingEnd, OneAtATime<Producer> {
public:
    RingWriter(RingCounters& counters, unsigned char* bytes, std::uint64_t capacity) : RingEnd(counters, bytes, capacity) {
        published_ = place_ = counters.written.load(relaxed);
        read_ = counters.read.load(acquire);  // pairs with finish()
        if (place_ - read_ > capacity || place_ % RecordHeader::unit != 0) mark_broken();
    }

    // The largest record that fits into an empty ring at any place.
    std::uint64_t largest() const { return capacity_ / 2 - RecordHeader::unit; }

    // Memory for the next record, of at most largest() bytes; null if there is no room now, or the ring is broken.
    // The record is not seen before publish(), and several may be published at once.
    [[nodiscard]] unsigned char* reserve(std::uint32_t size, std::uint32_t kind) {
        const Alone<Producer> alone(*this);
        assert(size <= largest() && kind != RecordHeader::filler);
        const std::uint64_t room = RecordHeader::room(size);
        const std::uint64_t to_end = capacity_ - offset(place_);
        const std::uint64_t skipped = room <= to_end ? 0 : to_end;
        if (!has_room(skipped + room)) return nullptr;
        if (skipped != 0) put(RecordHeader{0, RecordHeader::filler}), place_ += skipped;
        unsigned char* const record = put(RecordHeader{size, kind});
        place_ += room;
        return record;
    }

    // Shows the reader all records that were reserved, and are filled by now.
    void publish() {
        const Alone<Producer> alone(*this);
        published_ = place_;
        counters_.written.store(place_, release);  // pairs with next()
    }

private:
    bool has_room(std::uint64_t needed) {
        if (is_broken()) return false;
        if (place_ + needed - read_ <= capacity_) return true;
        const std::uint64_t read = counters_.read.load(acquire);  // pairs with finish()
        if (read < read_ || read > published_) return mark_broken(), false;
        read_ = read;
        return place_ + needed - read_ <= capacity_;
    }

    unsigned char* put(RecordHeader header) {
        unsigned char* const at = bytes_ + offset(place_);
        std::memcpy(at, &header, sizeof header);
        return at + RecordHeader::unit;
    }

    std::uint64_t published_{0};
    std::uint64_t read_{0};  // the other end's counter, as last seen
};

class RingReader : public RingEnd, OneAtATime<Consumer> {
public:
    struct Record {
        const unsigned char* bytes;
        std::uint32_t size;
        std::uint32_t kind;
    };

    RingReader(RingCounters& counters, unsigned char* bytes, std::uint64_t capacity) : RingEnd(counters, bytes, capacity) {
        place_ = written_ = finished_ = notified_ = counters.read.load(relaxed);
        if (place_ % RecordHeader::unit != 0) mark_broken();
    }

    // False: next() has nothing, as far as this thread knows. A quick look, for one of many rings.
    bool may_have_next() const {
        return place_ != written_ || counters_.written.load(relaxed) != written_;
    }

    // The next record, whose bytes stay until finish(). False: there is none now, or the ring is broken.
    [[nodiscard]] bool next(Record& record) {
        const Alone<Consumer> alone(*this);
        for (;;) {
            if (is_broken() || (place_ == written_ && !has_more())) return false;
            RecordHeader header;
            const std::uint64_t at = offset(place_), to_end = capacity_ - at;
            std::memcpy(&header, bytes_ + at, sizeof header);
            const bool is_filler = header.kind == RecordHeader::filler;
            const std::uint64_t room = is_filler ? to_end : RecordHeader::room(header.size);
            if (room > to_end || room > written_ - place_) return mark_broken(), false;
            place_ += room;
            if (is_filler) continue;
            record = {bytes_ + at + RecordHeader::unit, header.size, header.kind};
            return true;
        }
    }

    // Gives the room of all records so far back. True: a waiting writer should be notified. This is so after each
    // quarter of the ring, and when all that was seen is read: nothing waits then for room that is there.
    [[nodiscard]] bool finish() {
        const Alone<Consumer> alone(*this);
        if (place_ == finished_) return false;
        counters_.read.store(place_, release);  // pairs with has_room()
        finished_ = place_;
        if (place_ != written_ && place_ - notified_ < capacity_ / 4) return false;
        notified_ = place_;
        return true;
    }

private:
    bool has_more() {
        const std::uint64_t written = counters_.written.load(acquire);  // pairs with publish()
        if (written < written_ || written - finished_ > capacity_ || written % RecordHeader::unit != 0)
            return mark_broken(), false;
        written_ = written;
        return place_ != written_;
    }

    std::uint64_t written_{0};  // the other end's counter, as last seen
    std::uint64_t finished_{0};
    std::uint64_t notified_{0};
};

}  // namespace callboard
